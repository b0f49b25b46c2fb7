// SPDX-License-Identifier: Apache-2.0
#include "ir/rota/cost/Overlap.h"
#include "ir/rota/cost/Traffic.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::rota;

std::vector<OverlapStep> mlir::rota::overlapSteps(ArrayRef<Operation *> ops,
                                                  const Machine &machine) {
  std::vector<OverlapStep> steps(ops.size());
  llvm::DenseMap<Operation *, int> transfers;
  for (auto [number, op] : llvm::enumerate(ops)) {
    OverlapStep &step = steps[number];
    step.work = machine.secondsOfOp(op);
    if (!isa<ViewOpInterface>(op))
      for (Value operand : op->getOperands()) {
        auto found = transfers.find(viewedValue(operand).getDefiningOp());
        if (found != transfers.end())
          step.waits.push_back(found->second);
      }
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective)
      continue;
    Traffic traffic = trafficOf(collective);
    if (traffic.bytes == 0)
      continue;
    step.transfer =
        traffic::secondsOf(traffic.kind, traffic.bytes, traffic.group, machine);
    step.slowsWork = machine.levelOf(traffic.group).slowsWork;
    transfers[op] = int(number);
  }
  return steps;
}

std::vector<double> mlir::rota::exposedSeconds(ArrayRef<OverlapStep> steps,
                                               ArrayRef<int> order) {
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
      const Span &span = spans[first];
      double wait = std::max(0.0, span.end - std::max(now, span.begin));
      double beside = span.end - span.begin - wait;
      exposed[first] += wait + beside * steps[first].slowsWork;
      now = std::max(now, span.end) + beside * steps[first].slowsWork;
      open.erase(open.begin());
    }
  };
  for (int number : order) {
    const OverlapStep &step = steps[number];
    for (int transfer : step.waits)
      waitFor(transfer);
    now += step.work;
    if (step.transfer == 0)
      continue;
    double begin = std::max(now, free);
    free = begin + step.transfer;
    spans[number] = {begin, free};
    open.push_back(number);
  }
  return exposed;
}
