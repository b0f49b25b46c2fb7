// SPDX-License-Identifier: Apache-2.0
//
// Divides every value and op, function by function; residuals carry shardings
// from one function to the next.
#include "passes/shard/Passes.h"
#include "passes/shard/Propagation.h"

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

/// Results of one function that are arguments of another.
struct Handover {
  StringLiteral from;
  unsigned result;
  StringLiteral to;
  unsigned argument;
};
} // namespace

/// Where residuals begin, as ir/rota/Model.h says.
static constexpr Handover kHandovers[] = {
    {function::forward, 1, function::backward, 1},
    {function::forward, 1, function::backwardInput, 1},
    {function::forward, 1, function::backwardWeight, 1},
    {function::lossBackwardInput, 3, function::lossBackwardWeight, 2},
};

static func::FuncOp functionIn(Operation *table, StringRef name) {
  return llvm::dyn_cast_or_null<func::FuncOp>(
      SymbolTable::lookupSymbolIn(table, name));
}

/// Gives arguments of `to` from `argument` on the shardings of the results of
/// `from` from `result` on, as far as both have the same types.
static void handOver(func::FuncOp from, unsigned result, func::FuncOp to,
                     unsigned argument) {
  if (!from || !to)
    return;
  for (; result < from.getNumResults() && argument < to.getNumArguments();
       ++result, ++argument) {
    auto sharding = from.getResultAttrOfType<ShardingAttr>(result, kSharding);
    if (from.getResultTypes()[result] != to.getArgument(argument).getType())
      return;
    if (sharding && !to.getArgAttr(argument, kSharding))
      to.setArgAttr(argument, kSharding, sharding);
  }
}

void PropagateShardings::propagate(func::FuncOp function) {
  if (!function || function.isExternal())
    return;
  MeshAttr mesh = meshOf(function);
  Propagation propagation(function);
  propagation.run();
  for (Operation &op : function.getBody().front())
    if (isa<FactorRuleOpInterface>(op) && !isa<ReadOp, AccumulateOp>(op)) {
      writeFactors(&op, propagation.factorsOf(&op), mesh);
      dividedOps += op.hasAttr(RotaDialect::FactorsAttrHelper::getNameStr());
    }
  for (BlockArgument argument : function.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      function.setArgAttr(argument.getArgNumber(), kSharding,
                          propagation.shardingOf(argument));
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    auto tensor = dyn_cast<RankedTensorType>(operand.get().getType());
    // What a scalar is a sum over is not known yet.
    if (tensor && tensor.getRank() != 0 &&
        !function.getResultAttr(number, kSharding))
      function.setResultAttr(number, kSharding,
                             propagation.shardingOf(operand.get()));
  }
}

/// The functions of a layer or of the module, those that make residuals before
/// those that take them.
void PropagateShardings::propagateIn(Operation *table) {
  SmallVector<StringLiteral> order = {
      function::forward, function::backwardInput, function::lossBackwardInput};
  auto hasGone = [&](func::FuncOp function) {
    return llvm::is_contained(order, function.getSymName());
  };
  for (StringLiteral name : order) {
    func::FuncOp from = functionIn(table, name);
    propagate(from);
    for (const Handover &handover : kHandovers)
      if (handover.from == name)
        handOver(from, handover.result, functionIn(table, handover.to),
                 handover.argument);
    // Cotangent residuals follow the forward's.
    if (from && name == function::backwardInput)
      if (func::FuncOp to = functionIn(table, function::backwardWeight))
        handOver(from, 1, to, from.getNumArguments() - 1);
  }
  for (auto function : table->getRegion(0).getOps<func::FuncOp>())
    if (!hasGone(function))
      propagate(function);
}

void PropagateShardings::runOnOperation() {
  propagateIn(getOperation());
  for (auto stack : getOperation().getOps<StackOp>())
    for (auto layer : stack.getOps<LayerOp>())
      propagateIn(layer);
}
