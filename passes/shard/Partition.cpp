// SPDX-License-Identifier: Apache-2.0
//
// From whole tensors to one rank's parts: types, parameters, collectives.
#include "passes/shard/PartOfOp.h"
#include "passes/shard/Passes.h"
#include "passes/shard/reshard/ReshardPlanner.h"

#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/model/Model.h"

namespace mlir::rota {
#define GEN_PASS_DEF_PARTITION
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

static constexpr StringLiteral kSharding =
    RotaDialect::ShardingAttrHelper::getNameStr();

namespace {
/// The local form of an op, computed while all types are whole.
struct LocalForm {
  SmallVector<Type> results;
  FactorAxes factors;
  SmallVector<int64_t> sizes; // by factor
};

struct Partition : mlir::rota::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;
  void runOnOperation() override;

private:
  FailureOr<LocalForm> localForm(Operation *op);
  Type partOf(Value value, ShardingAttr sharding);
  LogicalResult partition(func::FuncOp function);
  LogicalResult rewrite(Operation *op, const LocalForm &form);
  ReshardPlan planOf(Operation *op);
  Value emit(Operation *op, const ReshardPlan &plan);

  MeshAttr mesh;
};
} // namespace

static ShardingAttr computeSharding(Operation *user, FlatSymbolRefAttr name) {
  ParamOp param = lookupParam(user, name.getAttr());
  return param.getPlacement() ? param.getPlacement()->getCompute()
                              : ShardingAttr();
}

Type Partition::partOf(Value value, ShardingAttr sharding) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return sharding && tensor ? Type(partType(tensor, sharding, mesh))
                            : value.getType();
}

FailureOr<LocalForm> Partition::localForm(Operation *op) {
  LocalForm form;
  if (auto read = dyn_cast<ReadOp>(op)) {
    form.results = {
        partOf(read.getResult(), computeSharding(op, read.getParamAttr()))};
    return form;
  }
  if (isa<ConstrainOp>(op))
    return op->emitOpError("expected none here, 'insert-reshards' comes first");
  if (!isa<FactorRuleOpInterface>(op)) {
    form.results = llvm::to_vector(op->getResultTypes());
    return form;
  }
  FactorRule rule = divisionRule(op);
  form.factors = readFactors(op, rule);
  form.sizes = rule.sizes;
  form.results = partTypes(op->getResults(), rule.results, form.factors, mesh);
  return form;
}

LogicalResult Partition::rewrite(Operation *op, const LocalForm &form) {
  OpBuilder builder(op);
  auto parts = buildPartOf(builder, op, form.factors, form.sizes, form.results);
  if (failed(parts))
    return failure();
  if (parts->empty())
    return success();
  op->replaceAllUsesWith(*parts);
  op->erase();
  return success();
}

/// The plan of a reshard, whose types are whole.
ReshardPlan Partition::planOf(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return planReshard(type, reshard.getFrom(), reshard.getTo(), mesh);
  auto rows = cast<ReshardRowsOp>(op);
  return planReshard(type, rows.getFrom(), rows.getTo(), mesh,
                     fillOf(rows.getFill()));
}

/// Builds the plan of a reshard, whose operands are parts.
Value Partition::emit(Operation *op, const ReshardPlan &plan) {
  OpBuilder builder(op);
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return emitReshard(builder, op->getLoc(), reshard.getValue(), plan,
                       reshard.getReason());
  auto rows = cast<ReshardRowsOp>(op);
  auto parts = [&](ShardingAttr sharding) {
    return mesh.getSize(dimensionAxes(sharding, mesh)[1]);
  };
  int64_t blocks = int64_t(rows.getBlocks()) /
                   std::max(parts(rows.getFrom()), parts(rows.getTo()));
  return emitReshard(
      builder, op->getLoc(), rows.getValue(), plan, rows.getReason(),
      {rows.getSent(), rows.getReceived(), blocks, rows.getFillAttr()});
}

LogicalResult Partition::partition(func::FuncOp function) {
  Block &body = function.getBody().front();
  // Plans and rules need the whole types, so both come before types change.
  SmallVector<std::pair<Operation *, LocalForm>> forms;
  llvm::DenseMap<Operation *, ReshardPlan> plans;
  for (Operation &op : body) {
    if (isa<ReshardOp, ReshardRowsOp>(op)) {
      plans[&op] = planOf(&op);
      forms.push_back({&op, {}});
      continue;
    }
    auto form = localForm(&op);
    if (failed(form))
      return failure();
    forms.push_back({&op, std::move(*form)});
  }
  for (BlockArgument argument : function.getArguments())
    argument.setType(partOf(argument, function.getArgAttrOfType<ShardingAttr>(
                                          argument.getArgNumber(), kSharding)));
  for (auto &[op, form] : forms) {
    if (isa<ReshardOp, ReshardRowsOp>(op)) {
      ++reshards;
      op->getResult(0).replaceAllUsesWith(emit(op, plans[op]));
      op->erase();
    } else if (failed(rewrite(op, form))) {
      return failure();
    }
  }
  function.setFunctionType(
      FunctionType::get(&getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
  return success();
}

void Partition::runOnOperation() {
  mesh = meshOf(getOperation());
  WalkResult result =
      getOperation().walk([&](func::FuncOp function) -> WalkResult {
        return function.isExternal() ? success() : partition(function);
      });
  if (result.wasInterrupted())
    return signalPassFailure();
  getOperation().walk([&](ParamOp param) {
    if (std::optional<PlacementAttr> placement = param.getPlacement())
      param.setType(
          partType(param.getTensorType(), placement->getCompute(), mesh));
  });
}
