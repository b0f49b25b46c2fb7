// SPDX-License-Identifier: Apache-2.0
//
// Divides every value and op of each function. A residual has one sharding in
// the function that makes it and in those that take it.
#include "passes/shard/Passes.h"
#include "passes/shard/propagation/CostChoice.h"
#include "passes/shard/propagation/LayerChoice.h"
#include "passes/shard/propagation/RowDivision.h"
#include "passes/shard/propagation/TokenDivision.h"

#include "ir/rota/model/Model.h"

namespace mlir::rota {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

static constexpr StringLiteral kSharding =
    RotaDialect::ShardingAttrHelper::getNameStr();

namespace {
struct PropagateShardings
    : mlir::rota::impl::PropagateShardingsBase<PropagateShardings> {
  using PropagateShardingsBase::PropagateShardingsBase;
  void runOnOperation() override;

private:
  void propagate(func::FuncOp function, const LayerChoice *choice);
  void propagateIn(Operation *scope);
};
} // namespace

/// Gives a residual's user the sharding with which it is made.
static void shardResidual(const RoleEdge &edge) {
  if (!edge.source.sharding()) // a scalar
    edge.source.setSharding(
        replicatedSharding(edge.source.type().getContext(), 0));
  if (!edge.user.sharding())
    edge.user.setSharding(edge.source.sharding());
}

/// Gives data the sharding that it has in the first function, where it still
/// has open dimensions.
static void shardData(const RoleEdge &edge) {
  ShardingAttr decided = edge.source.sharding(), given = edge.user.sharding();
  auto isOpen = [](DimensionShardingAttr dimension) {
    return dimension.getOpen();
  };
  if (decided && (!given || llvm::any_of(given.getDimensions(), isOpen)))
    edge.user.setSharding(decided);
}

/// `divided` with closed dimensions and the other axes of `given`.
static ShardingAttr closed(ShardingAttr divided, ShardingAttr given) {
  MLIRContext *context = divided.getContext();
  auto dimensions = llvm::map_to_vector(
      divided.getDimensions(), [&](DimensionShardingAttr dimension) {
        return DimensionShardingAttr::get(context, dimension.getAxes(),
                                          /*open=*/false);
      });
  return ShardingAttr::get(context, dimensions, given.getUnreduced(),
                           given.getReplicated());
}

/// Without a choice of a layer the function has one of its own.
void PropagateShardings::propagate(func::FuncOp function,
                                   const LayerChoice *choice) {
  if (function.isExternal())
    return;
  MeshAttr mesh = meshOf(function);
  decomposed += decomposeDividedRows(function);
  Propagation propagation(function);
  propagation.run();
  DivisionCosts costs(function, propagation);
  if (choice)
    choice->divide(function, costs);
  else
    CostChoice(function, propagation, costs);
  if (divisionMode == ShardingMode::Auto)
    dividedByTokens += TokenDivision(function, costs).dividedOps();
  for (Operation &op : function.getBody().front()) {
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      constrain.setShardingAttr(
          closed(propagation.shardingOf(constrain.getResult()),
                 constrain.getSharding()));
      continue;
    }
    if (isa<FactorRuleOpInterface>(op) && !isa<ReadOp, AccumulateOp>(op)) {
      writeFactors(&op, costs.factorsOf(&op), mesh);
      dividedOps += op.hasAttr(RotaDialect::FactorsAttrHelper::getNameStr());
    }
  }
  for (BlockArgument argument : function.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      function.setArgAttr(argument.getArgNumber(), kSharding,
                          propagation.shardingOf(argument));
  Operation *terminator = function.getBody().front().getTerminator();
  FunctionRoles roles(function);
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    auto tensor = dyn_cast<RankedTensorType>(operand.get().getType());
    auto given = function.getResultAttrOfType<ShardingAttr>(number, kSharding);
    if (given)
      function.setResultAttr(number, kSharding, closed(given, given));
    // The axes over which a scalar is a sum are not known yet.
    else if (tensor && tensor.getRank() != 0)
      function.setResultAttr(number, kSharding,
                             isResidual(roles.results()[number])
                                 ? costs.savedAs(operand.get())
                                 : propagation.shardingOf(operand.get()));
  }
}

/// The functions of a layer or of the module; those that make a residual or
/// take data first go before the others that use it.
void PropagateShardings::propagateIn(Operation *scope) {
  SmallVector<RoleEdge> edges = roleEdgesIn(scope);
  SmallVector<func::FuncOp> ordered = functionsIn(scope);
  std::optional<LayerChoice> choice;
  if (auto layer = dyn_cast<LayerOp>(scope))
    choice.emplace(layer);
  for (func::FuncOp function : ordered) {
    propagate(function, choice ? &*choice : nullptr);
    for (const RoleEdge &edge : edges) {
      if (edge.source.function != function)
        continue;
      if (isResidual(edge.role))
        shardResidual(edge);
      else if (isData(edge.role))
        shardData(edge);
    }
  }
  for (auto function : scope->getRegion(0).getOps<func::FuncOp>())
    if (!llvm::is_contained(ordered, function))
      propagate(function, /*choice=*/nullptr);
}

void PropagateShardings::runOnOperation() {
  propagateIn(getOperation());
  for (auto stack : getOperation().getOps<StackOp>())
    for (auto layer : stack.getOps<LayerOp>())
      propagateIn(layer);
}
