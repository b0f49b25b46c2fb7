// SPDX-License-Identifier: Apache-2.0
//
// The choice of experts, the rows of choices, and what is observed of them.
#include "ir/rota/OpFamily.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/experts/Parts.h"
#include "runtime/text/Text.h"

using namespace mlir;
using namespace mlir::rota;

static LogicalResult checkScaling(Operation *op, const APFloat &scaling) {
  if (scaling.isFinite() && !scaling.isNegative() && !scaling.isZero())
    return success();
  return op->emitOpError("expected a finite scaling above 0, got ")
         << ::rota::numberText(scaling.convertToDouble());
}

/// C1 of route and its derivative: logits [B, S, X], `choices` [B, S, k].
static LogicalResult checkRouting(Operation *op, Value logits, Value experts,
                                  StringRef what, Value weights) {
  if (failed(checkRank(op, "logits", logits, 3)) ||
      failed(checkRank(op, "experts", experts, 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(logits);
  int64_t k = shapeOf(experts)[2];
  if (failed(checkShape(op, "experts", experts, {shape[0], shape[1], k})) ||
      failed(checkShape(op, what, weights, {shape[0], shape[1], k})) ||
      failed(checkElement(op, what, weights, elementOf(logits))))
    return failure();
  if (k < 1 || k > shape[2])
    return op->emitOpError("expected from 1 to ")
           << shape[2] << " choices of " << shape[2] << " experts, got " << k;
  return success();
}

LogicalResult RouteOp::verify() {
  if (failed(checkRouting(*this, getLogits(), getExperts(), "weights",
                          getWeights())))
    return failure();
  // C2: a bias is [X].
  int64_t experts = shapeOf(getLogits())[2];
  if (getBias() && (failed(checkShape(*this, "a bias", getBias(), {experts})) ||
                    failed(checkElement(*this, "a bias", getBias(),
                                        elementOf(getLogits())))))
    return failure();
  // C3: groups of equal size, enough of them.
  if (bool(getGroups()) != bool(getTopGroups()))
    return emitOpError("expected groups and top_groups together, got ")
           << (getGroups() ? "groups" : "top_groups") << " alone";
  if (getGroups()) {
    int64_t groups = *getGroups(), top = *getTopGroups(),
            k = shapeOf(getExperts())[2];
    if (groups < 1 || experts % groups != 0)
      return emitOpError("expected a number of groups that divides ")
             << experts << " experts, got " << groups;
    if (top < 1 || top > groups || top * (experts / groups) < k)
      return emitOpError("expected from 1 to ")
             << groups << " top groups of " << experts / groups
             << " experts each that have " << k << " experts or more, got "
             << top;
  }
  // C4: the scaling.
  if (failed(checkScaling(*this, getScaling())))
    return failure();
  // C5: a rate of a bias.
  if (!getBiasRate())
    return success();
  double rate = getBiasRate()->convertToDouble();
  if (!std::isfinite(rate) || rate <= 0)
    return emitOpError("expected a finite bias_rate above 0, got ")
           << ::rota::numberText(rate);
  if (!getBias())
    return emitOpError("expected a bias for a bias_rate of ")
           << ::rota::numberText(rate);
  return success();
}

LogicalResult RouteGradOp::verify() {
  if (failed(checkRouting(*this, getLogits(), getExperts(), "a cotangent",
                          getCotangent())) ||
      failed(checkType(*this, "a result", getResult(), getLogits().getType())))
    return failure();
  return checkScaling(*this, getScaling());
}

LogicalResult ExpertPlacesOp::verify() {
  // C1: experts [B, S, k], counts [Q, X].
  if (failed(checkRank(*this, "experts", getExperts(), 3)) ||
      failed(checkRank(*this, "counts", getCounts(), 2)) ||
      failed(verifyParts(*this, getParts(), shapeOf(getExperts())[1])))
    return failure();
  int64_t experts = shapeOf(getCounts())[1];
  int64_t sequences = shapeOf(getExperts())[0] * int64_t(getParts());
  if (failed(checkShape(*this, "counts", getCounts(), {sequences, experts})) ||
      failed(verifyBlocks(*this, getBlocks(), getRows(), experts)))
    return failure();
  // C3: a capacity is positive.
  if (getCapacity() && int64_t(*getCapacity()) < 1)
    return emitOpError("expected a capacity of 1 row or more, got ")
           << int64_t(*getCapacity());
  // C4: choices of all parts.
  if (!getOthers())
    return success();
  if (!getCapacity())
    return emitOpError("expected a capacity beside others, got none");
  if (failed(checkRank(*this, "others", getOthers(), 2)))
    return failure();
  int64_t all = shapeOf(getOthers())[0];
  if (all % sequences != 0)
    return emitOpError("expected others of a multiple of ")
           << sequences << " parts, got " << all;
  if (failed(checkShape(*this, "others", getOthers(), {all, experts})))
    return failure();
  return checkOffset(*this, getOffset());
}

LogicalResult ObserveOp::verify() {
  // C1: counts [Q, X].
  if (failed(checkRank(*this, "counts", getCounts(), 2)))
    return failure();
  // C2: a sum of each row, and parts of a sequence.
  if (getEach() && int64_t(*getEach()) < 1)
    return emitOpError("expected 1 or more for each row, got ")
           << int64_t(*getEach());
  if (int64_t(getParts()) < 1)
    return emitOpError("expected 1 part of a sequence or more, got ")
           << int64_t(getParts());
  // C3: a function of a layer.
  if (!(*this)->getParentOfType<LayerOp>())
    return emitOpError("expected to stand in a function of a 'rota.layer'");
  return success();
}

bool ObserveOp::isAveraged() {
  auto reads = [&](ObservedMeanOp mean) {
    return mean.getName() == getName() ? WalkResult::interrupt()
                                       : WalkResult::advance();
  };
  return (*this)->getParentOfType<LayerOp>()->walk(reads).wasInterrupted();
}

LogicalResult ObservedMeanOp::verify() {
  // C1: a result [X].
  if (failed(checkRank(*this, "a result", getResult(), 1)))
    return failure();
  // C2: a function of a layer.
  if (!(*this)->getParentOfType<LayerOp>())
    return emitOpError("expected to stand in a function of a 'rota.layer'");
  return success();
}

/// The choices of each expert [X], in the element type of the logits: the
/// gradient of a table of the experts, whose rows the choices read, of ones.
static Value countChoices(RouteOp op, OpBuilder &builder) {
  Location loc = op.getLoc();
  RankedTensorType logits = tensorOf(op.getLogits()),
                   choices = tensorOf(op.getExperts());
  int64_t batch = choices.getDimSize(0), experts = logits.getDimSize(2);
  int64_t ofSequence = choices.getDimSize(1) * choices.getDimSize(2);
  Value list = ReshapeOp::create(
      builder, loc, choices.clone({batch, ofSequence}), op.getExperts());
  Value ones =
      splatConstant(builder, loc, logits.clone({batch, ofSequence, 1}), 1.0);
  Value sums = EmbeddingGradOp::create(builder, loc, logits.clone({experts, 1}),
                                       list, ones, /*offset=*/Value());
  return ReshapeOp::create(builder, loc, logits.clone({experts}), sums);
}

/// The choices are constant, and the bias is for them alone.
FailureOr<Cotangents> RouteOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                   ArrayRef<bool> needed) {
  Cotangents result(getNumOperands());
  if (getBiasRate() && needed[1])
    result[1] = countChoices(*this, builder);
  if (needed[0] && cotangents[0])
    result[0] = RouteGradOp::create(
        builder, getLoc(), getLogits().getType(), cotangents[0], getLogits(),
        getExperts(), getSigmoidAttr(), getNormalizeAttr(), getScalingAttr());
  return result;
}

/// Tokens are chosen for one by one.
FactorRule RouteOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions logits = builder.rowFactors(shapeOf(getLogits()));
  int64_t k = builder.factor(shapeOf(getExperts())[2], /*divisible=*/false);
  Dimensions choices{logits[0], logits[1], {k}};
  SmallVector<Dimensions> operands{logits};
  if (getBias())
    operands.push_back({logits[2]});
  return builder.finish(operands, {choices, choices});
}

FactorRule RouteGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  Dimensions logits = builder.rowFactors(shapeOf(getLogits()));
  int64_t k = builder.factor(shapeOf(getExperts())[2], /*divisible=*/false);
  Dimensions choices{logits[0], logits[1], {k}};
  return builder.finish({choices, logits, choices}, {logits});
}

/// A place depends on all choices of its part and, with a capacity, of earlier
/// parts.
FactorRule ExpertPlacesOp::getFactorRule() {
  RuleBuilder builder;
  ArrayRef<int64_t> shape = shapeOf(getExperts());
  Dimensions choices{{builder.factor(shape[0])},
                     {builder.factor(shape[1] / int64_t(getParts()), false)},
                     {builder.factor(shape[2], false)}};
  int64_t experts =
      builder.factor(shapeOf(getCounts())[1], /*divisible=*/false);
  auto sequences = partFactors(builder, getParts(), choices);
  SmallVector<Dimensions> operands{choices};
  if (getOthers())
    operands.push_back(
        {{builder.factor(shapeOf(getOthers())[0], false)}, {experts}});
  return builder.finish(withOffset(std::move(operands), getOffset()),
                        {choices, {sequences, {experts}}});
}

/// Ranks that have parts of one sequence tell each other the choices of each
/// expert before an expert's choices above the capacity are dropped.
Parts ExpertPlacesOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                ArrayRef<int64_t>, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = divideParts(*this, factors);
  if (!getCapacity() || axes.empty())
    return SmallVector<Value>();
  Location loc = getLoc();
  auto choices = create(builder, loc, types, getExperts(), /*others=*/Value(),
                        /*offset=*/Value(), getRows(), getBlocks(),
                        /*capacity=*/IntegerAttr(), getParts());
  auto counts = cast<RankedTensorType>(types[1]);
  int64_t ranks = meshOf(*this).getSize(axes);
  Value all = AllGatherOp::create(
      builder, loc,
      counts.clone({counts.getDimSize(0) * ranks, counts.getDimSize(1)}),
      choices.getCounts(), builder.getI64IntegerAttr(0),
      axesAttr(builder, axes),
      builder.getStringAttr("choices of all parts of a sequence"));
  Value first = firstEntry(loc, builder, axes, getParts());
  return llvm::to_vector_of<Value>(create(builder, loc, types, getExperts(),
                                          all, first, getRows(), getBlocks(),
                                          getCapacityAttr(), getParts())
                                       .getResults());
}

/// Ranks with parts of the batch have parts of the rows.
FactorRule ObserveOp::getFactorRule() {
  RuleBuilder builder;
  ArrayRef<int64_t> shape = shapeOf(getCounts());
  int64_t batch = builder.factor(shape[0]);
  int64_t columns = builder.factor(shape[1], /*divisible=*/false);
  return builder.finish({{{batch}, {columns}}}, {});
}

FactorRule ObservedMeanOp::getFactorRule() {
  RuleBuilder builder;
  int64_t columns =
      builder.factor(shapeOf(getResult())[0], /*divisible=*/false);
  return builder.finish({}, {{{columns}}});
}

/// maximum, -, exp, +; a comparison for each choice.
Cost RouteOp::getCost() {
  double k = double(lastDimension(getExperts()));
  return streamingCost(*this, (4 + k) * elementsOf(getLogits()),
                       elementsOf(getLogits()));
}

/// Read by the host after the step.
Cost ObserveOp::getCost() { return {}; }

/// Filled before a step.
Cost ObservedMeanOp::getCost() { return {}; }

/// The softmax again; -, *.
Cost RouteGradOp::getCost() {
  return streamingCost(*this, 6 * elementsOf(getLogits()),
                       elementsOf(getLogits()));
}

Cost ExpertPlacesOp::getCost() { return streamingCost(*this, 0); }

TaskForm ObserveOp::getTaskForm() { return TaskForm::Address; }
TaskForm ObservedMeanOp::getTaskForm() { return TaskForm::Address; }
