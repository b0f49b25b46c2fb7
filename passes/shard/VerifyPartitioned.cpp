// SPDX-License-Identifier: Apache-2.0
//
// Says what is illegal in a partitioned model. Labels V1..V4 are those of the
// pass's description.
#include "ir/rota/Model.h"
#include "ir/rota/Sharding.h"
#include "passes/shard/Passes.h"

namespace mlir::rota {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
/// An argument or result of a function.
struct Border {
  func::FuncOp function;
  bool isResult;
  unsigned index;

  Type type() const {
    FunctionType type = const_cast<func::FuncOp &>(function).getFunctionType();
    return isResult ? type.getResult(index) : type.getInput(index);
  }
  ShardingAttr sharding() const {
    auto &op = const_cast<func::FuncOp &>(function);
    StringRef name = RotaDialect::ShardingAttrHelper::getNameStr();
    return isResult ? op.getResultAttrOfType<ShardingAttr>(index, name)
                    : op.getArgAttrOfType<ShardingAttr>(index, name);
  }
  std::string name() const {
    return (Twine(isResult ? "result " : "argument ") + Twine(index) + " of '" +
            const_cast<func::FuncOp &>(function).getSymName() + "'")
        .str();
  }
};

struct VerifyPartitioned
    : rota::impl::VerifyPartitionedBase<VerifyPartitioned> {
  void runOnOperation() override {
    if (failed(verifyOps()))
      return signalPassFailure();
    markAllAnalysesPreserved();
    if (getOperation().getOps<StackOp>().empty())
      return; // functions that make no model
    FailureOr<Model> model = Model::get(getOperation());
    if (failed(model) || failed(verifyBorders(*model)))
      return signalPassFailure();
  }

private:
  LogicalResult verifyOps();
  LogicalResult verifyBorders(const Model &model);
  LogicalResult verifyLayer(const Model &model, LayerOp kind);
};
} // namespace

static Border argument(func::FuncOp function, unsigned index) {
  return {function, false, index};
}

static Border result(func::FuncOp function, unsigned index) {
  return {function, true, index};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// V2: no collective over `stage`.
static LogicalResult verifyGroup(CollectiveOpInterface collective) {
  for (auto ref : collective.getAxes().getAsRange<AxisRefAttr>())
    if (ref.getAxis() == MeshAxis::Stage)
      return collective.emitOpError("expected a group within a stage, got the "
                                    "axis 'stage', whose ranks run different "
                                    "functions");
  return success();
}

/// V3: the type is that of a part under the compute sharding.
static LogicalResult verifyParam(ParamOp param, MeshAttr mesh) {
  if (!param.getPlacement())
    return param.emitOpError("expected a placement");
  PlacementAttr placement = *param.getPlacement();
  RankedTensorType type = param.getTensorType();
  RankedTensorType part =
      partType(type.clone(placement.getWhole()), placement.getCompute(), mesh);
  if (type != part)
    return param.emitOpError("expected the type of one rank's part ")
           << part << ", got " << type;
  return success();
}

LogicalResult VerifyPartitioned::verifyOps() {
  // V1: a mesh.
  if (!meshOpOf(getOperation()))
    return getOperation().emitError("expected a 'rota.mesh' in the module");
  MeshAttr mesh = meshOf(getOperation());
  WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
    // V1: nothing is left to reshard.
    if (isa<ReshardOp, ConstrainOp>(op))
      return op->emitOpError("expected no reshard or constraint in a "
                             "partitioned module");
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      return verifyGroup(collective);
    if (auto param = dyn_cast<ParamOp>(op))
      return verifyParam(param, mesh);
    return success();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

/// The axes that divide a value and over which it is a sum, without what only
/// propagation reads.
static bool sameDivision(ShardingAttr a, ShardingAttr b, MeshAttr mesh) {
  auto axes = [&](ArrayRef<AxisRefAttr> list) {
    return mergedAxes(list, mesh);
  };
  for (auto [left, right] :
       llvm::zip_equal(a.getDimensions(), b.getDimensions()))
    if (axes(left.getAxes()) != axes(right.getAxes()))
      return false;
  auto sorted = [&](ShardingAttr sharding) {
    SmallVector<AxisRefAttr> list(sharding.getUnreduced());
    llvm::sort(list, [](AxisRefAttr x, AxisRefAttr y) {
      return std::tuple(x.getAxis(), x.getBefore()) <
             std::tuple(y.getAxis(), y.getBefore());
    });
    return axes(list);
  };
  return sorted(a) == sorted(b);
}

/// V4: what `from` gives is what `to` takes. Functions that are not there
/// agree.
static LogicalResult verifyHandOver(Border from, Border to) {
  if (!from.function || !to.function)
    return success();
  auto count = [](Border border) {
    return border.isResult ? border.function.getNumResults()
                           : border.function.getNumArguments();
  };
  for (Border border : {from, to})
    if (border.index >= count(border))
      return border.function.emitOpError("expected ") << border.name();
  auto complain = [&](Attribute given, Attribute taken) {
    auto diagnostic = to.function.emitOpError("expected ")
                      << to.name() << " to be as " << from.name() << ", "
                      << given << ", got " << taken;
    diagnostic.attachNote(from.function.getLoc()) << "the other function";
    return diagnostic;
  };
  if (from.type() != to.type())
    return complain(TypeAttr::get(from.type()), TypeAttr::get(to.type()));
  ShardingAttr given = from.sharding(), taken = to.sharding();
  if (given && taken && !sameDivision(given, taken, meshOf(to.function)))
    return complain(given, taken);
  return success();
}

/// V4 of one kind of layer; signatures as in Model.h.
LogicalResult VerifyPartitioned::verifyLayer(const Model &model, LayerOp kind) {
  auto function = [&](StringRef name) { return Model::function(kind, name); };
  func::FuncOp forward = function(function::forward);
  func::FuncOp input = function(function::backwardInput);
  func::FuncOp weight = function(function::backwardWeight);
  func::FuncOp back = function(function::backward);
  func::FuncOp first = input ? input : back;
  Border activation = result(model.embed, 0);
  unsigned residuals = forward.getNumResults() - 1;
  SmallVector<std::pair<Border, Border>> pairs = {
      {activation, argument(forward, 0)},
      {activation, result(forward, 0)},
      {activation, argument(first, 0)},
      {activation, argument(first, residuals + 1)},
      {activation, result(first, 0)},
      {activation, argument(weight, 0)}};
  for (unsigned index = 1; index <= residuals; ++index) {
    pairs.emplace_back(result(forward, index), argument(first, index));
    pairs.emplace_back(result(forward, index), argument(weight, index));
  }
  if (input && weight)
    for (unsigned index = 1; index < input.getNumResults(); ++index)
      pairs.emplace_back(result(input, index),
                         argument(weight, residuals + index));
  for (auto [from, to] : pairs)
    if (failed(verifyHandOver(from, to)))
      return failure();
  return success();
}

LogicalResult VerifyPartitioned::verifyBorders(const Model &model) {
  func::FuncOp embedBackward = model.function(function::embedBackward);
  func::FuncOp input = model.function(function::lossBackwardInput);
  func::FuncOp weight = model.function(function::lossBackwardWeight);
  func::FuncOp back = model.function(function::lossBackward);
  func::FuncOp first = input ? input : back;
  Border activation = result(model.embed, 0);
  Border targets = argument(model.loss, 1);
  SmallVector<std::pair<Border, Border>> pairs = {
      {activation, argument(model.loss, 0)},
      {argument(model.embed, 0), argument(embedBackward, 0)},
      {activation, argument(embedBackward, 1)},
      {activation, argument(first, 0)},
      {targets, argument(first, 1)},
      {result(model.loss, 0), result(first, 0)},
      {result(model.loss, 1), result(first, 1)},
      {activation, result(first, 2)},
      {activation, argument(weight, 0)},
      {targets, argument(weight, 1)}};
  if (input && weight)
    for (unsigned index = 3; index < input.getNumResults(); ++index)
      pairs.emplace_back(result(input, index), argument(weight, index - 1));
  for (auto [from, to] : pairs)
    if (failed(verifyHandOver(from, to)))
      return failure();
  for (LayerOp kind : model.kinds())
    if (failed(verifyLayer(model, kind)))
      return failure();
  return success();
}
