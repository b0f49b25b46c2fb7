// SPDX-License-Identifier: Apache-2.0
//
// The choice between a composite op on gathered rows and its parts on divided
// ones.
#include "passes/shard/propagation/RowDivision.h"

#include "ir/rota/cost/Machine.h"
#include "mlir/IR/Remarks.h"
#include "passes/shard/propagation/Propagation.h"
#include "passes/shard/reshard/ReshardPlanner.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
/// An op without uses and its parts, which stand in front of it.
struct Decomposed {
  Operation *op;
  AxisList axes; // axes that divide its rows
  SmallVector<Operation *> parts;
  SmallVector<Value> results; // the parts' results

  /// Gives the uses back to the op and erases the parts.
  void restore() {
    for (auto [value, result] : llvm::zip_equal(results, op->getResults()))
      if (llvm::is_contained(parts, value.getDefiningOp()))
        value.replaceAllUsesWith(result);
    for (Operation *part : llvm::reverse(parts))
      part->erase();
  }
};

/// The choice for one function. All costs are bytes that a rank sends.
class RowDivision {
public:
  explicit RowDivision(func::FuncOp function)
      : function(function), mesh(meshOf(function)),
        machine(machineOf(function)) {}

  int64_t run();

private:
  AxisList rowAxes(Operation *op, Propagation &divided);
  void decompose(Operation *op, ArrayRef<AxisRefAttr> axes);
  double costOfWhole(const Decomposed &decomposed, Propagation &divided);
  double costOfParts(const Decomposed &decomposed, Propagation &divided);
  double costOf(Value value, ShardingAttr from, ShardingAttr to);
  void explain(Operation *op, double parts, double whole);

  func::FuncOp function;
  MeshAttr mesh;
  Machine machine;
  SmallVector<Decomposed> candidates;
};
} // namespace

int64_t mlir::rota::decomposeDividedRows(func::FuncOp function) {
  return RowDivision(function).run();
}

/// The axes that `divided` gives to factors that are whole in the op.
AxisList RowDivision::rowAxes(Operation *op, Propagation &divided) {
  AxisList axes;
  FactorAxes factors = divided.factorsOf(op);
  for (int64_t factor : divisionRule(op).indivisible)
    llvm::append_range(axes, factors[factor]);
  return normalizedSet(axes, mesh);
}

/// Puts the parts of `op` in front of it, which then has no uses.
void RowDivision::decompose(Operation *op, ArrayRef<AxisRefAttr> axes) {
  Operation *before = op->getPrevNode();
  OpBuilder builder(op);
  auto results = cast<DecomposableOpInterface>(op).decompose(builder);
  if (failed(results))
    return;
  Decomposed decomposed{op, AxisList(axes), {}, std::move(*results)};
  Operation *part = before ? before->getNextNode() : &op->getBlock()->front();
  for (; part != op; part = part->getNextNode())
    decomposed.parts.push_back(part);
  op->replaceAllUsesWith(decomposed.results);
  candidates.push_back(std::move(decomposed));
}

int64_t RowDivision::run() {
  SmallVector<std::pair<Operation *, AxisList>> found;
  {
    Propagation divided(function, rowDivisionRule);
    divided.run();
    for (Operation &op : function.getBody().front())
      if (isa<DecomposableOpInterface>(op))
        if (AxisList axes = rowAxes(&op, divided); !axes.empty())
          found.push_back({&op, axes});
  }
  for (auto &[op, axes] : found)
    decompose(op, axes);
  if (candidates.empty())
    return 0;
  SmallVector<bool> takesParts;
  {
    Propagation divided(function);
    divided.run();
    for (const Decomposed &candidate : candidates) {
      double parts = costOfParts(candidate, divided);
      double whole = costOfWhole(candidate, divided);
      explain(candidate.op, parts, whole);
      takesParts.push_back(parts < whole);
    }
  }
  for (auto [candidate, taken] : llvm::zip_equal(candidates, takesParts)) {
    if (taken)
      candidate.op->erase();
    else
      candidate.restore();
  }
  return llvm::count(takesParts, true);
}

double RowDivision::costOf(Value value, ShardingAttr from, ShardingAttr to) {
  auto type = cast<RankedTensorType>(value.getType());
  return planReshard(type, from, to, mesh).weightOn(machine, mesh);
}

/// Gathers of the operands' rows, and the work that ranks then repeat. Ranks
/// cut their parts out of the results.
double RowDivision::costOfWhole(const Decomposed &decomposed,
                                Propagation &divided) {
  Operation *op = decomposed.op;
  FactorRule rule = divisionRule(op);
  double cost = 0;
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), rule.operands)) {
    DimensionAxes from = dimensionAxes(divided.shardingOf(operand), mesh);
    DimensionAxes to = from;
    for (auto [axes, factors] : llvm::zip(to, tensor))
      if (llvm::any_of(factors, [&](int64_t factor) {
            return llvm::is_contained(rule.indivisible, factor);
          }))
        axes.clear();
    cost += costOf(operand, makeSharding(op->getContext(), from, {}, mesh),
                   makeSharding(op->getContext(), to, {}, mesh));
  }
  double flops = partFlops(op, divided.factorsOf(op), mesh);
  double repeated = 1 - 1.0 / double(mesh.getSize(decomposed.axes));
  return cost + machine.bytesOfWork(flops * repeated,
                                    getElementTypeOrSelf(op->getResult(0)));
}

/// Sums of the parts of rows over the ranks that have them.
double RowDivision::costOfParts(const Decomposed &decomposed,
                                Propagation &divided) {
  double cost = 0;
  for (Operation *part : decomposed.parts) {
    if (!isa<FactorRuleOpInterface>(part))
      continue;
    FactorRule rule = divisionRule(part);
    FactorAxes factors = divided.factorsOf(part);
    for (OpResult result : part->getResults()) {
      unsigned number = result.getResultNumber();
      AxisList sums = intersection(summedAxes(rule, number, factors, mesh),
                                   decomposed.axes, mesh);
      DimensionAxes dimensions =
          composeDimensions(rule.results[number], factors, mesh);
      cost += costOf(result,
                     makeSharding(part->getContext(), dimensions, sums, mesh),
                     makeSharding(part->getContext(), dimensions, {}, mesh));
    }
  }
  return cost;
}

void RowDivision::explain(Operation *op, double parts, double whole) {
  remark::passed(op->getLoc(),
                 remark::RemarkOpts::name("divided-row").category("shard"))
      << remark::reason(parts < whole
                            ? "'{0}' is written as its parts, whose sums over "
                              "a row are summed up over ranks"
                            : "'{0}' works on gathered rows",
                        op->getName().getStringRef())
      << remark::metric("Sums", int64_t(parts))
      << remark::metric("Gathers", int64_t(whole));
}
