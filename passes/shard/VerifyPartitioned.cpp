// SPDX-License-Identifier: Apache-2.0
//
// Rejects models that are not partitioned. Labels V1..V4 are those of the
// pass's description.
#include "ir/rota/experts/Experts.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/sharding/Sharding.h"
#include "passes/shard/Passes.h"

namespace mlir::rota {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct VerifyPartitioned
    : mlir::rota::impl::VerifyPartitionedBase<VerifyPartitioned> {
  void runOnOperation() override {
    if (failed(verifyOps()))
      return signalPassFailure();
    markAllAnalysesPreserved();
    if (getOperation().getOps<StackOp>().empty())
      return; // functions that make no model
    FailureOr<Model> model = Model::get(getOperation());
    if (failed(model) || failed(verifyValues(*model)))
      return signalPassFailure();
  }

private:
  LogicalResult verifyOps();
  LogicalResult verifyValues(const Model &model);
};
} // namespace

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
    if (isa<ReshardOp, ReshardRowsOp, ConstrainOp>(op))
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
// Values between functions
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

/// V4: `port` has the type and the sharding of `source`.
static LogicalResult verifyPort(const FunctionPort &source,
                                const FunctionPort &port) {
  auto complain = [&](Attribute expected, Attribute got) {
    auto diagnostic = func::FuncOp(port.function).emitOpError("expected ")
                      << port.describe() << " to be as " << source.describe()
                      << ", " << expected << ", got " << got;
    diagnostic.attachNote(func::FuncOp(source.function).getLoc())
        << "the other function";
    return diagnostic;
  };
  if (source.type() != port.type())
    return complain(TypeAttr::get(source.type()), TypeAttr::get(port.type()));
  ShardingAttr expected = source.sharding(), got = port.sharding();
  if (expected && got && !sameDivision(expected, got, meshOf(port.function)))
    return complain(expected, got);
  return success();
}

/// V4 of the arguments or results of `function`, whose roles are `roles`.
static LogicalResult verifyPorts(func::FuncOp function, bool isResult,
                                 ArrayRef<Role> roles,
                                 const FunctionPort &activation) {
  SmallVector<FunctionPort> sources;
  for (Role role : roles) {
    if (isActivation(role))
      sources.push_back(activation);
    else
      llvm::append_range(sources, sourcesIn(function->getParentOp(), role));
  }
  unsigned count =
      isResult ? function.getNumResults() : function.getNumArguments();
  if (count < sources.size())
    return function.emitOpError("expected ")
           << FunctionPort{function, isResult, count}.describe();
  for (auto [index, source] : llvm::enumerate(sources))
    if (failed(verifyPort(source, {function, isResult, unsigned(index)})))
      return failure();
  return success();
}

/// V4 where each call of the loss takes a part of the sequence: its activation
/// is divided as all others, and a rank has the same rows of the targets.
static LogicalResult verifyRows(const FunctionPort &activation,
                                const Model &model) {
  FunctionRoles loss(model.loss);
  FunctionPort own = loss.argument(Role::InputActivation);
  ShardingAttr expected = activation.sharding();
  if (!expected)
    return success();
  for (const FunctionPort &port : {own, loss.argument(Role::Targets)}) {
    ShardingAttr got = port.sharding();
    bool isSame = got && llvm::all_of(ArrayRef{0, 1}, [&](int dim) {
                    return expected.getDimensions()[dim].getAxes() ==
                           got.getDimensions()[dim].getAxes();
                  });
    if (!isSame ||
        (port == own && !sameDivision(expected, got, meshOf(port.function))))
      return func::FuncOp(model.loss).emitOpError("expected ")
             << port.describe() << " to have the rows of "
             << activation.describe() << ", " << expected << ", got " << got;
  }
  return success();
}

LogicalResult VerifyPartitioned::verifyValues(const Model &model) {
  FunctionPort activation =
      FunctionRoles(model.embed).result(Role::OutputActivation);
  FunctionPort ofLoss = activation;
  if (model.lossCalls() > 1) {
    ofLoss = FunctionRoles(model.loss).argument(Role::InputActivation);
    if (failed(verifyRows(activation, model)))
      return failure();
  }
  SmallVector<Operation *> scopes = {model.module};
  llvm::append_range(scopes, model.kinds());
  for (Operation *scope : scopes)
    for (func::FuncOp function : functionsIn(scope)) {
      const Signature &row = signatureOf(function);
      FunctionPort expected = row.part == ModelPart::Loss ? ofLoss : activation;
      if (failed(verifyPorts(function, /*isResult=*/false, row.arguments,
                             expected)) ||
          failed(
              verifyPorts(function, /*isResult=*/true, row.results, expected)))
        return failure();
    }
  return success();
}
