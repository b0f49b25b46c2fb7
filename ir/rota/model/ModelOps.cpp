// SPDX-License-Identifier: Apache-2.0
//
// The ops of a model's structure: parameters, layers, stacks, gradients and
// auxiliary losses.
#include "ir/rota/OpFamily.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/model/Update.h"
#include "runtime/program/TensorNames.h"
#include "runtime/text/Text.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

LogicalResult NormalAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 APFloat mean, APFloat deviation) {
  if (!(deviation.convertToDouble() >= 0))
    return emitError() << "expected a deviation of at least 0, got "
                       << ::rota::numberText(deviation.convertToDouble());
  return success();
}

LogicalResult UniformAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  APFloat low, APFloat high) {
  if (!(low <= high))
    return emitError() << "expected low <= high, got "
                       << ::rota::numberText(low.convertToDouble()) << " and "
                       << ::rota::numberText(high.convertToDouble());
  return success();
}

/// C6: `after` is `before` with axes appended on at most one dimension.
static LogicalResult verifyDivided(ParamOp param, ShardingAttr before,
                                   ShardingAttr after, StringRef name) {
  if (!after.getUnreduced().empty())
    return param.emitOpError("expected no unreduced axes in the ")
           << name << " sharding, got " << after;
  int64_t changed = 0;
  for (auto [a, b] :
       llvm::zip_equal(before.getDimensions(), after.getDimensions())) {
    ArrayRef<AxisRefAttr> had = a.getAxes(), has = b.getAxes();
    if (had.size() > has.size() || has.take_front(had.size()) != had)
      changed = 2;
    changed += had != has;
  }
  if (changed > 1)
    return param.emitOpError("expected the ")
           << name << " sharding to be " << before
           << " with axes appended on at most one dimension, got " << after;
  return success();
}

static LogicalResult verifyPlacement(ParamOp param, PlacementAttr placement) {
  // C5: a size and a division per dimension.
  RankedTensorType type = param.getTensorType();
  ArrayRef<int64_t> whole = placement.getWhole();
  if (int64_t(whole.size()) != type.getRank())
    return param.emitOpError("expected a whole size for each of the ")
           << type.getRank() << " dimensions, got " << whole.size();
  for (ShardingAttr sharding : {placement.getCompute(), placement.getStorage(),
                                placement.getOptimizer()})
    if (failed(verifySharding(param, sharding, type.getRank())))
      return failure();
  // C5: the type is the whole tensor's or that of one rank's part.
  RankedTensorType wholeType = type.clone(whole);
  RankedTensorType part =
      partType(wholeType, placement.getCompute(), meshOf(param));
  if (type != wholeType && type != part)
    return param.emitOpError("expected the whole type ")
           << wholeType << " or a rank's " << part << ", got " << type;
  // C6: each sharding divides the one before further.
  if (failed(verifyDivided(param, placement.getCompute(),
                           placement.getStorage(), "storage")))
    return failure();
  return verifyDivided(param, placement.getStorage(), placement.getOptimizer(),
                       "optimizer");
}

ArrayRef<int64_t> ParamOp::getWholeShape() {
  PlacementAttr placement = getPlacementAttr();
  return placement ? placement.getWhole() : getTensorType().getShape();
}

StringRef ParamOp::getFileName() {
  return getJoinedAttr() ? getJoinedAttr().getTensor() : getSymName();
}

int64_t ParamOp::getNamedDimensions() {
  return ::rota::placeholders(getFileName());
}

/// C8: the dimension is there for all, and the parameter inside of the tensor.
static LogicalResult verifyPlace(ParamOp param, JoinedAttr joined) {
  int64_t rank = param.getTensorType().getRank();
  int64_t named = param.getNamedDimensions(), dimension = joined.getDimension();
  if (dimension < named || dimension >= rank)
    return param.emitOpError("expected a joined dimension from ")
           << named << " to " << rank - 1 << ", got " << dimension;
  int64_t own = param.getWholeShape()[dimension], begin = joined.getBegin();
  if (begin < 0 || begin > joined.getSize() - own)
    return param.emitOpError("expected ")
           << own << " elements of the " << joined.getSize() << " of '"
           << joined.getTensor() << "', got those from " << begin << " on";
  return success();
}

LogicalResult ParamOp::verify() {
  // C2: `axes` names every dimension.
  if (int64_t(getAxes().size()) != getTensorType().getRank())
    return emitOpError("expected an axis name per dimension, got ")
           << getAxes().size() << " for " << getTensorType().getRank();
  // C3: `init` is an initializer.
  if (!isa<NormalAttr, UniformAttr, ConstantAttr>(getInit()))
    return emitOpError("expected '#rota.normal', '#rota.uniform' or "
                       "'#rota.constant', got ")
           << getInit();
  // C4: it stands in a module or in a layer.
  if (!isa_and_nonnull<ModuleOp, LayerOp>((*this)->getParentOp()))
    return emitOpError("expected to stand in a module or in a 'rota.layer'");
  // C7: a dimension for each placeholder of the name.
  SmallVector<StringRef> pieces;
  getFileName().split(pieces, '{');
  for (StringRef piece : llvm::drop_begin(pieces))
    if (!piece.contains('}'))
      return emitOpError("expected '}' after each '{' of its name");
  if (getNamedDimensions() > getTensorType().getRank())
    return emitOpError("expected a dimension for each placeholder of its name, "
                       "got ")
           << getTensorType().getRank() << " for " << getNamedDimensions();
  // C5 and C6 before C8, which reads the size of the whole.
  if (getPlacement() && failed(verifyPlacement(*this, *getPlacement())))
    return failure();
  return getJoinedAttr() ? verifyPlace(*this, getJoinedAttr()) : success();
}

LogicalResult LayerOp::verifyRegions() {
  // C1: it holds a function `@forward`.
  func::FuncOp forward = Model::function(*this, FunctionKind::Forward);
  if (!forward)
    return emitOpError("expected a function 'forward'");
  // C2: one activation type.
  FunctionRoles roles(forward);
  auto inputs = roles.arguments(Role::InputActivation);
  auto outputs = roles.results(Role::OutputActivation);
  if (inputs.empty() || outputs.empty() ||
      inputs.front().type() != outputs.front().type() ||
      !isa<RankedTensorType>(inputs.front().type()))
    return emitOpError("expected the first argument and the first result of "
                       "'forward' to be one tensor type, got ")
           << forward.getFunctionType();
  return success();
}

LogicalResult StackOp::verifyRegions() {
  // C1: at least one layer.
  if (getLayers() < 1)
    return emitOpError("expected at least 1 layer, got ") << getLayers();
  // C2: the pattern has one kind a layer at most and names layers of this
  // stack, every one.
  if (getPattern().empty())
    return emitOpError("expected a pattern of layer kinds, got none");
  if (getPattern().size() > getLayers())
    return emitOpError("expected a pattern of at most ")
           << getLayers() << " kinds, one for each layer, got "
           << getPattern().size();
  SmallPtrSet<Operation *, 4> named;
  for (auto kind : getPattern().getAsRange<FlatSymbolRefAttr>()) {
    Operation *layer = mlir::SymbolTable::lookupSymbolIn(*this, kind.getAttr());
    if (!isa_and_nonnull<LayerOp>(layer))
      return emitOpError("expected the pattern to name layers of the stack, '")
             << kind.getValue() << "' is none";
    named.insert(layer);
  }
  Type activation;
  LayerOp first;
  for (LayerOp layer : getOps<LayerOp>()) {
    if (!named.contains(layer)) {
      auto diagnostic = emitOpError("expected the pattern to name every layer "
                                    "kind, '")
                        << layer.getSymName() << "' is missing";
      diagnostic.attachNote(layer.getLoc()) << "the kind";
      return diagnostic;
    }
    // C3: all kinds have one activation type.
    func::FuncOp forward = Model::function(layer, FunctionKind::Forward);
    if (!forward || forward.getNumArguments() == 0)
      continue;
    Type type = FunctionRoles(forward).argument(Role::InputActivation).type();
    if (!activation) {
      activation = type;
      first = layer;
    } else if (type != activation) {
      auto diagnostic = emitOpError("expected one activation type, '")
                        << layer.getSymName() << "' has " << type;
      diagnostic.attachNote(first.getLoc()) << "this kind has " << activation;
      return diagnostic;
    }
  }
  return success();
}

/// Checks that `name` means a parameter of `op`'s layer or module with the
/// shape of `type`.
static LogicalResult verifyParamUse(Operation *op, FlatSymbolRefAttr name,
                                    Type type) {
  // C1: the symbol names a parameter.
  ParamOp param = lookupParam(op, name.getAttr());
  if (!param)
    return op->emitOpError("expected a parameter, '")
           << name.getValue() << "' is none here";
  // C2: the shape is the parameter's.
  auto shape = cast<RankedTensorType>(type).getShape();
  if (shape != param.getTensorType().getShape()) {
    auto diagnostic = op->emitOpError("expected the parameter's shape ")
                      << param.getType() << ", got " << type;
    diagnostic.attachNote(param.getLoc()) << "the parameter";
    return diagnostic;
  }
  // C3: a layer's function uses its own layer's parameters only.
  if (op->getParentOfType<LayerOp>() && !isa<LayerOp>(param->getParentOp())) {
    auto diagnostic =
        op->emitOpError("expected a parameter of its own layer, '")
        << name.getValue() << "' stands outside";
    diagnostic.attachNote(param.getLoc()) << "the parameter";
    return diagnostic;
  }
  return success();
}

LogicalResult ReadOp::verify() {
  return verifyParamUse(*this, getParamAttr(), getType());
}

LogicalResult AccumulateOp::verify() {
  if (failed(verifyParamUse(*this, getParamAttr(), getValue().getType())))
    return failure();
  // C3: the parameter is not frozen.
  ParamOp param = lookupParam(*this, getParamAttr().getAttr());
  if (!param.getFrozen())
    return success();
  auto diagnostic = emitOpError("expected a parameter with a gradient, '")
                    << getParam() << "' is frozen";
  diagnostic.attachNote(param.getLoc()) << "the parameter";
  return diagnostic;
}

/// C1 of the ops of auxiliary losses: `value` is a scalar.
static LogicalResult verifyScalar(Operation *op, Value value) {
  if (cast<RankedTensorType>(value.getType()).getRank() == 0)
    return success();
  return op->emitOpError("expected a scalar, got ") << value.getType();
}

LogicalResult AuxiliaryLossOp::verify() {
  // C1: a scalar.
  if (failed(verifyScalar(*this, getSum())))
    return failure();
  // C2: a positive weight and a finite coefficient.
  double weight = getWeight().convertToDouble();
  if (!std::isfinite(weight) || weight <= 0)
    return emitOpError("expected a weight above 0, got ")
           << ::rota::numberText(weight);
  if (!getCoefficient().isFinite())
    return emitOpError("expected a finite coefficient, got ")
           << ::rota::numberText(getCoefficient().convertToDouble());
  // C3: a function of a layer.
  if (!(*this)->getParentOfType<LayerOp>())
    return emitOpError("expected to stand in a function of a 'rota.layer'");
  return success();
}

LogicalResult AuxiliaryCotangentOp::verify() {
  // C1: a scalar.
  return verifyScalar(*this, getResult());
}

LogicalResult NameOp::verify() {
  // C1: the name is not empty.
  if (getName().empty())
    return emitOpError("expected a name, got an empty string");
  return success();
}

FailureOr<Cotangents> NameOp::vjp(OpBuilder &, ValueRange cotangents,
                                  ArrayRef<bool>) {
  return Cotangents{cotangents[0]};
}

FactorRule ReadOp::getFactorRule() {
  RuleBuilder builder;
  return withPadding(
      builder.finish({}, {builder.factors(shapeOf(getResult()))}));
}

FactorRule AccumulateOp::getFactorRule() {
  RuleBuilder builder;
  return withPadding(
      builder.finish({builder.factors(shapeOf(getValue()))}, {}));
}

/// Parts of the sum are parts of the loss.
FactorRule AuxiliaryLossOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  return builder.finish({Dimensions()}, {});
}

FactorRule AuxiliaryCotangentOp::getFactorRule() {
  return RuleBuilder().finish({}, {Dimensions()});
}

FactorRule NameOp::getFactorRule() {
  return withPadding(elementwiseFactorRule(*this, {{0}}));
}

Cost ReadOp::getCost() { return {}; }

OpResult AccumulateOp::getAddingResult() {
  auto result = dyn_cast<OpResult>(viewedValue(getValue()));
  auto source =
      result ? dyn_cast<TaskOpInterface>(result.getOwner()) : TaskOpInterface();
  if (!source || !source.canAccumulate(result.getResultNumber()))
    return {};
  // The sums of products are f32 until they are added to a narrower type.
  Type type = gradientType(lookupParam(*this, getParamAttr().getAttr()));
  bool isAdded = type == getElementTypeOrSelf(result) ||
                 source.getTaskForm() == TaskForm::Product;
  return isAdded ? result : OpResult();
}

/// Reads the value and the gradient, writes the gradient. Nothing where the op
/// that makes the value adds it: its cost has the writing.
Cost AccumulateOp::getCost() {
  if (OpResult result = getAddingResult(); result && result.hasOneUse())
    return {};
  double bytes = bytesOf(getValue());
  return {elementsOf(getValue()), 2 * bytes, bytes};
}

/// Reads the sum and the term, writes the term.
Cost AuxiliaryLossOp::getCost() {
  double bytes = bytesOf(getSum());
  return {1, 2 * bytes, bytes};
}

/// Filled at the start of a step.
Cost AuxiliaryCotangentOp::getCost() { return {}; }

Cost NameOp::getCost() { return {}; }
TaskForm ReadOp::getTaskForm() { return TaskForm::Address; }
TaskForm AccumulateOp::getTaskForm() { return TaskForm::Address; }
TaskForm AuxiliaryLossOp::getTaskForm() { return TaskForm::Address; }
TaskForm AuxiliaryCotangentOp::getTaskForm() { return TaskForm::Address; }
