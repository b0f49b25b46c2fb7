// SPDX-License-Identifier: Apache-2.0
//
// Divides every value and op, function by function; residuals carry shardings
// from one function to the next.
#include "passes/shard/Passes.h"
#include "passes/shard/propagation/Propagation.h"
#include "passes/shard/propagation/ResidualEdges.h"

#include "ir/rota/Model.h"

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
    : rota::impl::PropagateShardingsBase<PropagateShardings> {
  using PropagateShardingsBase::PropagateShardingsBase;
  void runOnOperation() override;

private:
  void propagate(func::FuncOp function);
  void propagateIn(Operation *table);
};
} // namespace

/// Gives a residual's user the sharding with which it is made.
static void shardEdge(ResidualEdge &edge) {
  auto sharding =
      edge.from.getResultAttrOfType<ShardingAttr>(edge.result, kSharding);
  if (!sharding) { // a scalar
    sharding = replicatedSharding(edge.from.getContext(), 0);
    edge.from.setResultAttr(edge.result, kSharding, sharding);
  }
  if (!edge.to.getArgAttr(edge.argument, kSharding))
    edge.to.setArgAttr(edge.argument, kSharding, sharding);
}

/// Gives the second function's argument the sharding of the first's, where it
/// still has open dimensions.
static void share(const SharedData &data) {
  auto [first, firstArgument, second, secondArgument] = data;
  auto decided = first.getArgAttrOfType<ShardingAttr>(firstArgument, kSharding);
  auto given = second.getArgAttrOfType<ShardingAttr>(secondArgument, kSharding);
  auto isOpen = [](DimensionShardingAttr dimension) {
    return dimension.getOpen();
  };
  if (decided && (!given || llvm::any_of(given.getDimensions(), isOpen)))
    func::FuncOp(second).setArgAttr(secondArgument, kSharding, decided);
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

void PropagateShardings::propagate(func::FuncOp function) {
  if (!function || function.isExternal())
    return;
  MeshAttr mesh = meshOf(function);
  Propagation propagation(function);
  propagation.run();
  for (Operation &op : function.getBody().front()) {
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      constrain.setShardingAttr(
          closed(propagation.shardingOf(constrain.getResult()),
                 constrain.getSharding()));
      continue;
    }
    if (isa<FactorRuleOpInterface>(op) && !isa<ReadOp, AccumulateOp>(op)) {
      writeFactors(&op, propagation.factorsOf(&op), mesh);
      dividedOps += op.hasAttr(RotaDialect::FactorsAttrHelper::getNameStr());
    }
  }
  for (BlockArgument argument : function.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      function.setArgAttr(argument.getArgNumber(), kSharding,
                          propagation.shardingOf(argument));
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    auto tensor = dyn_cast<RankedTensorType>(operand.get().getType());
    auto given = function.getResultAttrOfType<ShardingAttr>(number, kSharding);
    if (given)
      function.setResultAttr(number, kSharding, closed(given, given));
    // What a scalar is a sum over is not known yet.
    else if (tensor && tensor.getRank() != 0)
      function.setResultAttr(number, kSharding,
                             propagation.shardingOf(operand.get()));
  }
}

/// The functions of a layer or of the module, those that decide for others
/// first.
void PropagateShardings::propagateIn(Operation *table) {
  SmallVector<ResidualEdge> edges = residualEdgesIn(table);
  SmallVector<SharedData> shared = sharedDataIn(table);
  SmallVector<StringLiteral> order = {
      function::embed, function::loss, function::forward,
      function::backwardInput, function::lossBackwardInput};
  for (StringLiteral name : order) {
    auto function = llvm::dyn_cast_or_null<func::FuncOp>(
        SymbolTable::lookupSymbolIn(table, name));
    propagate(function);
    for (ResidualEdge &edge : edges)
      if (edge.from == function)
        shardEdge(edge);
    for (SharedData &data : shared)
      if (data.first == function)
        share(data);
  }
  for (auto function : table->getRegion(0).getOps<func::FuncOp>())
    if (!llvm::is_contained(order, function.getSymName()))
      propagate(function);
}

void PropagateShardings::runOnOperation() {
  propagateIn(getOperation());
  for (auto stack : getOperation().getOps<StackOp>())
    for (auto layer : stack.getOps<LayerOp>())
      propagateIn(layer);
}
