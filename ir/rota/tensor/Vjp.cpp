// SPDX-License-Identifier: Apache-2.0
//
// Vector-Jacobian products of the rota ops. In the formulas dy is the cotangent
// of the result y, dx that of the operand x. A composite op's rule is a
// composite op (`rms_norm_grad`, ...), so that decomposition and kernels see
// one op.
#include "ir/rota/Rules.h"
#include "ir/rota/experts/Experts.h"

using namespace mlir;
using namespace mlir::rota;

using Cotangents = SmallVector<Value>;

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Type elementOf(Value value) { return getElementTypeOrSelf(value); }

Value rota::castElements(OpBuilder &builder, Location loc, Value value,
                         Type element) {
  Type from = elementOf(value);
  if (from == element)
    return value;
  Type type = element;
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
    type = tensor.clone(element);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

Type rota::cotangentElement(Value operand) {
  Type element = elementOf(operand);
  if (viewedValue(operand).getDefiningOp<ReadOp>() &&
      element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(operand.getContext());
  return element;
}

Value rota::splatConstant(OpBuilder &builder, Location loc, Type type,
                          double value) {
  TypedAttr attribute;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    attribute = DenseElementsAttr::get(
        tensor, builder.getFloatAttr(tensor.getElementType(), value));
  else
    attribute = builder.getFloatAttr(type, value);
  return arith::ConstantOp::create(builder, loc, attribute);
}

/// One null per operand of `op`.
static Cotangents none(Operation *op) {
  return Cotangents(op->getNumOperands());
}

FailureOr<Cotangents> NameOp::vjp(OpBuilder &, ValueRange cotangents,
                                  ArrayRef<bool>) {
  return Cotangents{cotangents[0]};
}

/// y = einsum "A,B->R" a, b gives da = einsum "R,B->A" dy, b and
/// db = einsum "R,A->B" dy, a. The operands' element type is kept in the
/// product; a parameter's gradient leaves it unrounded.
FailureOr<Cotangents> EinsumOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                    ArrayRef<bool> needed) {
  Letters letters = getLetters();
  Value dy =
      castElements(builder, getLoc(), cotangents[0], elementOf(getLhs()));
  auto product = [&](Value other, StringRef otherLetters, Value operand,
                     StringRef operandLetters) -> Value {
    auto type = tensorOf(operand).clone(cotangentElement(operand));
    std::string equation =
        (letters.result + "," + otherLetters + "->" + operandLetters).str();
    return EinsumOp::create(builder, getLoc(), type, equation, dy, other);
  };
  Cotangents result = none(*this);
  if (needed[0])
    result[0] = product(getRhs(), letters.rhs, getLhs(), letters.lhs);
  if (needed[1])
    result[1] = product(getLhs(), letters.lhs, getRhs(), letters.rhs);
  return result;
}

FailureOr<Cotangents> ReshapeOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool>) {
  Type type = tensorOf(getInput()).clone(elementOf(cotangents[0]));
  return Cotangents{ReshapeOp::create(builder, getLoc(), type, cotangents[0])};
}

/// The dimensions of a tensor of this rank that `dims` does not name.
static SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      others.push_back(dim);
  return others;
}

/// sum: dx = broadcast dy. max: dx = broadcast (dy / n) at the n elements of x
/// that equal the maximum, counted in f32 at least.
FailureOr<Cotangents> ReduceOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                    ArrayRef<bool>) {
  RankedTensorType type = tensorOf(getInput());
  SmallVector<int64_t> kept = otherDims(type.getRank(), getDims());
  auto spread = [&](Value value) -> Value {
    return BroadcastOp::create(builder, getLoc(), type, value, kept);
  };
  Value dy = cotangents[0];
  if (getKind() == ReduceKind::Sum)
    return Cotangents{spread(dy)};
  Value isMaximum =
      arith::CmpFOp::create(builder, getLoc(), arith::CmpFPredicate::OEQ,
                            getInput(), spread(getResult()));
  Type element = elementOf(dy), wide = element;
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  auto constant = [&](Type element, double value) {
    return splatConstant(builder, getLoc(), type.clone(element), value);
  };
  Value ones = arith::SelectOp::create(
      builder, getLoc(), isMaximum, constant(wide, 1.0), constant(wide, 0.0));
  Value count =
      ReduceOp::create(builder, getLoc(), tensorOf(getResult()).clone(wide),
                       ReduceKind::Sum, ones, getDims());
  Value share = arith::DivFOp::create(
      builder, getLoc(), castElements(builder, getLoc(), dy, wide), count);
  Value dx = spread(castElements(builder, getLoc(), share, element));
  return Cotangents{arith::SelectOp::create(builder, getLoc(), isMaximum, dx,
                                            constant(element, 0.0))};
}

/// dx = sum of dy over the repeated dimensions, added in f32 at least.
FailureOr<Cotangents> BroadcastOp::vjp(OpBuilder &builder,
                                       ValueRange cotangents, ArrayRef<bool>) {
  Value dy = cotangents[0];
  Type wide = elementOf(dy);
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  Value sum = ReduceOp::create(
      builder, getLoc(), tensorOf(getInput()).clone(wide), ReduceKind::Sum,
      castElements(builder, getLoc(), dy, wide),
      otherDims(tensorOf(getResult()).getRank(), getDims()));
  return Cotangents{
      castElements(builder, getLoc(), sum, cotangentElement(getInput()))};
}

FailureOr<Cotangents> RMSNormOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool> needed) {
  Type wide = elementOf(getGain());
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  auto grad = RMSNormGradOp::create(
      builder, getLoc(),
      TypeRange{getInput().getType(), tensorOf(getGain()).clone(wide)},
      cotangents[0], getInput(), getGain(), getEpsilonAttr(),
      getCenteredAttr());
  Cotangents result = none(*this);
  if (needed[0])
    result[0] = grad.getInputCotangent();
  if (needed[1])
    result[1] = castElements(builder, getLoc(), grad.getGainCotangent(),
                             cotangentElement(getGain()));
  return result;
}

FailureOr<Cotangents> ActivationOp::vjp(OpBuilder &builder,
                                        ValueRange cotangents,
                                        ArrayRef<bool> needed) {
  auto grad =
      ActivationGradOp::create(builder, getLoc(), getOperandTypes(), getKind(),
                               cotangents[0], getInput(), getUp());
  Cotangents result = none(*this);
  for (auto [index, cotangent] : llvm::enumerate(grad.getResults()))
    if (needed[index])
      result[index] = cotangent;
  return result;
}

/// dx = the parts' cotangents in their places, zeros for those without one.
FailureOr<Cotangents> SplitOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                   ArrayRef<bool>) {
  SmallVector<Value> parts(cotangents);
  for (auto [part, value] : llvm::zip(parts, getParts()))
    if (!part)
      part = splatConstant(builder, getLoc(), value.getType(), 0.0);
  return Cotangents{ConcatOp::create(builder, getLoc(), getInput().getType(),
                                     parts, getDim())};
}

FailureOr<Cotangents> ConcatOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                    ArrayRef<bool>) {
  auto split = SplitOp::create(builder, getLoc(), getOperandTypes(),
                               cotangents[0], getDim());
  return Cotangents(split.getParts());
}

/// A rotation's transpose is the rotation back; the table's scale stays.
FailureOr<Cotangents> RopeOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                  ArrayRef<bool> needed) {
  if (needed[1])
    return emitOpError("has no derivative in its table");
  return Cotangents{RopeOp::create(builder, getLoc(), getType(), cotangents[0],
                                   getTable(), !getInverse()),
                    Value()};
}

FailureOr<Cotangents> AttentionOp::vjp(OpBuilder &builder,
                                       ValueRange cotangents,
                                       ArrayRef<bool> needed) {
  if (cotangents[1])
    return emitOpError("has no derivative of its logsumexp");
  if (getPrevious() || getPosition())
    return emitOpError("has no derivative where keys are of another block");
  // One result for each operand.
  auto grad = AttentionGradOp::create(
      builder, getLoc(), TypeRange(getOperands()), cotangents[0], getQuery(),
      getKey(), getValue(), getOutput(), getLogsumexp(), getSinks(),
      /*position=*/Value(), /*key_position=*/Value(), getScaleAttr(),
      getWindowAttr(), getSoftCapAttr(), getBidirectionalAttr(), getRingAttr(),
      getBalancedAttr(), /*behind=*/IntegerAttr());
  Cotangents result = none(*this);
  for (auto [index, cotangent] : llvm::enumerate(grad.getResults()))
    if (needed[index])
      result[index] = cotangent;
  return result;
}

FailureOr<Cotangents> EmbeddingOp::vjp(OpBuilder &builder,
                                       ValueRange cotangents,
                                       ArrayRef<bool> needed) {
  Cotangents result = none(*this);
  if (!needed[1])
    return result;
  Type wide = elementOf(getTable());
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  Value grad = EmbeddingGradOp::create(builder, getLoc(),
                                       tensorOf(getTable()).clone(wide),
                                       getTokens(), cotangents[0], getOffset());
  result[1] =
      castElements(builder, getLoc(), grad, cotangentElement(getTable()));
  return result;
}

/// The weight is a count, so its derivative is zero.
FailureOr<Cotangents> CrossEntropyOp::vjp(OpBuilder &builder,
                                          ValueRange cotangents,
                                          ArrayRef<bool> needed) {
  Cotangents result = none(*this);
  Value cotangent = cotangents[0], ofRows = cotangents[2];
  if (!needed[0] || (!cotangent && !ofRows))
    return result;
  if (!cotangent)
    cotangent = splatConstant(builder, getLoc(), getSum().getType(), 0.0);
  result[0] = CrossEntropyGradOp::create(
      builder, getLoc(), getLogits().getType(), cotangent, getLogits(),
      getTargets(), getLogsumexp(), ofRows);
  return result;
}

/// The choices of each expert [X], in the element type of the logits.
static Value countChoices(RouteOp op, OpBuilder &builder) {
  Location loc = op.getLoc();
  auto logits = cast<RankedTensorType>(op.getLogits().getType());
  auto choices = cast<RankedTensorType>(op.getExperts().getType());
  int64_t batch = choices.getDimSize(0), experts = logits.getDimSize(2);
  int64_t rows = choices.getDimSize(1) * choices.getDimSize(2);
  auto places = ExpertPlacesOp::create(
      builder, loc, choices, choices.clone({batch, experts}), op.getExperts(),
      rows, /*blocks=*/1, /*capacity=*/IntegerAttr());
  Value ones = splatConstant(builder, loc, logits.clone({batch, rows, 1}), 1.0);
  Value sums =
      GroupedBiasGradOp::create(builder, loc, logits.clone({experts, 1}), ones,
                                places.getCounts(), /*blocks=*/1);
  return ReshapeOp::create(builder, loc, logits.clone({experts}), sums);
}

/// The choices are constant, and the bias is for them alone.
FailureOr<Cotangents> RouteOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                   ArrayRef<bool> needed) {
  Cotangents result = none(*this);
  if (getBiasRate() && needed[1])
    result[1] = countChoices(*this, builder);
  if (needed[0] && cotangents[0])
    result[0] = RouteGradOp::create(
        builder, getLoc(), getLogits().getType(), cotangents[0], getLogits(),
        getExperts(), getSigmoidAttr(), getNormalizeAttr(), getScalingAttr());
  return result;
}

/// The cotangents of the operands of dispatch or combine: `moved` is that of
/// what they move; a weight's is the dot product of a token and a row.
template <typename Op>
static Cotangents placedCotangents(Op op, OpBuilder &builder, Value moved,
                                   Value tokens, Value rows,
                                   ArrayRef<bool> needed) {
  Cotangents result = none(op);
  result[0] = moved;
  if (op.getWeights() && needed[2])
    result[2] =
        ChoiceDotOp::create(builder, op.getLoc(), op.getWeights().getType(),
                            tokens, rows, op.getPlaces(), op.getOffset(),
                            op.getCounts(), op.getBlocks(), op.getFillAttr());
  return result;
}

FailureOr<Cotangents> DispatchOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                      ArrayRef<bool> needed) {
  Value moved;
  if (needed[0])
    moved = CombineOp::create(
        builder, getLoc(), getTokens().getType(), cotangents[0], getPlaces(),
        getWeights(), getOffset(), getCounts(), getBlocks(), getFillAttr());
  return placedCotangents(*this, builder, moved, getTokens(), cotangents[0],
                          needed);
}

FailureOr<Cotangents> CombineOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool> needed) {
  Value moved;
  if (needed[0])
    moved = DispatchOp::create(
        builder, getLoc(), getRows().getType(), cotangents[0], getPlaces(),
        getWeights(), getOffset(), getCounts(), getBlocks(), getFillAttr());
  return placedCotangents(*this, builder, moved, cotangents[0], getRows(),
                          needed);
}

/// y = x w gives dx = dy w^T and dw = x^T dy in each group of rows. As of an
/// einsum, a parameter's gradient is not rounded.
FailureOr<Cotangents> GroupedProductOp::vjp(OpBuilder &builder,
                                            ValueRange cotangents,
                                            ArrayRef<bool> needed) {
  Value dy =
      castElements(builder, getLoc(), cotangents[0], elementOf(getRows()));
  Cotangents result = none(*this);
  if (needed[0])
    result[0] = GroupedProductOp::create(
        builder, getLoc(),
        tensorOf(getRows()).clone(cotangentElement(getRows())), dy,
        getWeights(), getCounts(), getOffset(), !getTransposed(), getBlocks(),
        getFillAttr());
  if (needed[1])
    result[1] = GroupedProductGradOp::create(
        builder, getLoc(),
        tensorOf(getWeights()).clone(cotangentElement(getWeights())),
        getTransposed() ? dy : getRows(), getTransposed() ? getRows() : dy,
        getCounts(), getBlocks(), getFillAttr());
  return result;
}

FailureOr<Cotangents> GroupedBiasOp::vjp(OpBuilder &builder,
                                         ValueRange cotangents,
                                         ArrayRef<bool> needed) {
  Cotangents result = none(*this);
  if (needed[0])
    result[0] = cotangents[0];
  if (!needed[1])
    return result;
  Type wide = elementOf(getBias());
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  Value grad = GroupedBiasGradOp::create(
      builder, getLoc(), tensorOf(getBias()).clone(wide), cotangents[0],
      getCounts(), getBlocks());
  result[1] =
      castElements(builder, getLoc(), grad, cotangentElement(getBias()));
  return result;
}
