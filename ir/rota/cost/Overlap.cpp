// SPDX-License-Identifier: Apache-2.0
#include "ir/rota/cost/Overlap.h"
#include "ir/rota/cost/Traffic.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::rota;

std::vector<OverlapStep> rota::overlapSteps(ArrayRef<Operation *> ops) {
  std::vector<OverlapStep> steps(ops.size());
  llvm::DenseMap<Operation *, int> transfers;
  for (auto [number, op] : llvm::enumerate(ops)) {
    OverlapStep &step = steps[number];
    if (auto priced = dyn_cast<CostOpInterface>(op))
      step.flops = priced.getCost().flops;
    if (!isa<ViewOpInterface>(op))
      for (Value operand : op->getOperands()) {
        auto found = transfers.find(viewedValue(operand).getDefiningOp());
        if (found != transfers.end())
          step.waits.push_back(found->second);
      }
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective)
      continue;
    step.bytes = trafficOf(collective).bytes;
    if (step.bytes > 0)
      transfers[op] = int(number);
  }
  return steps;
}

std::vector<double> rota::exposedSeconds(ArrayRef<OverlapStep> steps,
                                         ArrayRef<int> order,
                                         const AssumedSpeed &speed) {
  struct Span {
    double begin = 0, end = 0;
  };
  std::vector<Span> spans(steps.size());
  std::vector<double> exposed(steps.size(), 0);
  SmallVector<int> open; // in the order in which they run
  double now = 0, free = 0;
  auto waitFor = [&](int transfer) {
    while (llvm::is_contained(open, transfer)) {
      int first = open.front();
      exposed[first] +=
          std::max(0.0, spans[first].end - std::max(now, spans[first].begin));
      now = std::max(now, spans[first].end);
      open.erase(open.begin());
    }
  };
  for (int number : order) {
    const OverlapStep &step = steps[number];
    for (int transfer : step.waits)
      waitFor(transfer);
    now += speed.secondsOfWork(step.flops);
    if (step.bytes == 0)
      continue;
    double begin = std::max(now, free);
    free = begin + speed.secondsOfTransfer(double(step.bytes));
    spans[number] = {begin, free};
    open.push_back(number);
  }
  return exposed;
}
