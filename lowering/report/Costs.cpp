// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/Costs.h"

#include "ir/rota/cost/Traffic.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

/// The reason for people. Of rows that counts say are filled: how much room
/// they have, which the bytes do not show.
static std::string reasonOf(mlir::rota::CollectiveOpInterface collective) {
  std::string reason = collective.getReason().str();
  auto ragged =
      llvm::dyn_cast<mlir::rota::RaggedAllToAllOp>(collective.getOperation());
  if (!ragged)
    return reason;
  auto type = llvm::cast<mlir::RankedTensorType>(ragged.getInput().getType());
  int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  return reason + fmt::format("; {:.3g} % of {:.2f} MiB expected filled",
                              100 * mlir::rota::fillOf(ragged.getFill()),
                              static_cast<double>(bytes) / (1 << 20));
}

static void addCollective(mlir::rota::CollectiveOpInterface collective,
                          const std::string &function, FunctionCost &cost) {
  mlir::rota::Traffic traffic = mlir::rota::trafficOf(collective);
  if (traffic.bytes == 0)
    return;
  std::string kind = collective->getName().stripDialect().str();
  std::replace(kind.begin(), kind.end(), '_', '-');
  std::string tensor;
  llvm::raw_string_ostream(tensor) << collective->getResult(0).getType();
  cost.collectives.push_back(
      {{kind, tensor, mlir::rota::axesText(traffic.axes), traffic.ranks,
        function + ": " + reasonOf(collective)},
       traffic.bytes});
}

namespace {
/// Collects the costs of one function's ops, in their order.
class CostCollector {
public:
  CostCollector(std::string function, FunctionCost &cost)
      : function(std::move(function)), cost(cost) {}

  void add(mlir::Operation *op) {
    llvm::erase_if(open, [&](const OpenTransfer &transfer) {
      return llvm::is_contained(op->getOperands(), transfer.result);
    });
    if (auto priced = llvm::dyn_cast<mlir::rota::CostOpInterface>(op))
      addWork(priced.getCost().flops);
    auto collective = llvm::dyn_cast<mlir::rota::CollectiveOpInterface>(op);
    if (!collective)
      return;
    size_t before = cost.collectives.size();
    addCollective(collective, function, cost);
    if (llvm::isa<mlir::rota::PermuteOp>(op) &&
        cost.collectives.size() > before)
      open.push_back({op->getResult(0), before});
  }

private:
  /// A transfer that runs until its result is used, and its place in the list.
  struct OpenTransfer {
    mlir::Value result;
    size_t use;
  };

  /// Transfers that run at the same time share the time of the work.
  void addWork(double flops) {
    cost.flops += flops;
    for (const OpenTransfer &transfer : open)
      cost.collectives[transfer.use].flops +=
          flops / static_cast<double>(open.size());
  }

  std::string function;
  FunctionCost &cost;
  llvm::SmallVector<OpenTransfer> open;
};
} // namespace

FunctionCosts functionCosts(mlir::ModuleOp module) {
  FunctionCosts costs;
  module.walk([&](mlir::func::FuncOp function) {
    std::string name = function.getSymName().str();
    if (auto kind =
            llvm::dyn_cast<mlir::rota::LayerOp>(function->getParentOp()))
      name = kind.getSymName().str() + "." + name;
    CostCollector collector(name, costs[name]);
    function.walk([&](mlir::Operation *op) { collector.add(op); });
  });
  return costs;
}

double stepOperations(const Program &program, const FunctionCosts &costs) {
  double operations = 0;
  for (const Stage &stage : program.stages) {
    std::vector<int64_t> counts = stage.countActions();
    for (size_t i = 0; i < counts.size(); ++i)
      for (const Call &call : stage.templates[i].calls) {
        auto cost = costs.find(program.tasks[call.task]);
        if (cost != costs.end())
          operations += static_cast<double>(counts[i]) * cost->second.flops;
      }
  }
  return operations;
}

} // namespace rota
