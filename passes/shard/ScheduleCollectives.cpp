// SPDX-License-Identifier: Apache-2.0
//
// Moves collectives and ops that have nothing to do with them, so that the ones
// run beside the others.
#include "ir/rota/cost/Overlap.h"
#include "passes/shard/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

#include <numeric>

namespace mlir::rota {
#define GEN_PASS_DEF_SCHEDULECOLLECTIVES
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {

/// Numbers of ops, in some order.
using Order = std::vector<int>;

/// An order of a block's ops in which ranks wait less for transfers.
class BlockSchedule {
public:
  BlockSchedule(Block &block, const Machine &machine) {
    for (Operation &op : block)
      ops.push_back(&op);
    steps = overlapSteps(ops, machine);
    addDependences();
    Order given(ops.size());
    std::iota(given.begin(), given.end(), 0);
    take(given, exposedSeconds(steps, given));
  }

  /// Improves the order, transfer by transfer; the number of moves.
  int improve();
  /// Puts the block's ops in this order.
  void apply() const {
    for (int number : ArrayRef(order).drop_back())
      ops[number]->moveBefore(ops.back());
  }

private:
  void addDependences();
  void keepSums(const llvm::DenseMap<Operation *, int> &numbers);
  void addDependence(int from, int to) {
    needs[to].push_back(from);
    users[from].push_back(to);
  }

  /// The ops that are reached along `edges`, the start included.
  std::vector<bool> reached(int from, ArrayRef<SmallVector<int>> edges) const;
  void take(Order candidate, std::vector<double> times);
  bool accept(Order candidate);
  bool isExposed(int transfer) const { return exposed[transfer] > kNothing; }
  double secondsOf(int number) const { return steps[number].work; }
  /// The order with the ops that are `moved`, in their present order, directly
  /// before place `to`.
  Order moveTo(const std::vector<bool> &moved, int to) const;

  void startEarlier(int transfer);
  void deferWork(int transfer);
  void advanceWork(int transfer);

  static constexpr double kNothing = 1e-9; // seconds
  static constexpr int kTries = 8;         // moves of one sort for a transfer

  SmallVector<Operation *> ops;
  std::vector<OverlapStep> steps;
  std::vector<SmallVector<int>> needs, users;
  Order order;
  Order places; // the place of each op in the order
  std::vector<double> exposed;
  double total = 0;
  int moves = 0;
};

} // namespace

void BlockSchedule::addDependences() {
  needs.resize(ops.size());
  users.resize(ops.size());
  llvm::DenseMap<Operation *, int> numbers;
  int lastEffect = -1;
  for (auto [index, op] : llvm::enumerate(ops)) {
    int number = int(index);
    numbers[op] = number;
    for (Value operand : op->getOperands())
      if (auto found = numbers.find(operand.getDefiningOp());
          found != numbers.end())
        addDependence(found->second, number);
    if (isMemoryEffectFree(op) || isa<AccumulateOp>(op))
      continue;
    if (lastEffect >= 0)
      addDependence(lastEffect, number);
    lastEffect = number;
  }
  keepSums(numbers);
}

/// Keeps the order of what is added to one gradient. A product may add to it
/// where it stands, before its value is accumulated.
void BlockSchedule::keepSums(const llvm::DenseMap<Operation *, int> &numbers) {
  llvm::MapVector<Attribute, SmallVector<int>> sums;
  for (Operation *op : ops)
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      SmallVector<int> &sum = sums[accumulate.getParamAttr()];
      sum.push_back(numbers.lookup(op));
      Operation *source = viewedValue(accumulate.getValue()).getDefiningOp();
      if (auto found = numbers.find(source); found != numbers.end())
        sum.push_back(found->second);
    }
  for (auto &[param, sum] : sums) {
    llvm::sort(sum);
    for (size_t i = 1; i < sum.size(); ++i)
      if (sum[i - 1] != sum[i])
        addDependence(sum[i - 1], sum[i]);
  }
}

std::vector<bool>
BlockSchedule::reached(int from, ArrayRef<SmallVector<int>> edges) const {
  std::vector<bool> found(ops.size(), false);
  SmallVector<int> open{from};
  found[from] = true;
  while (!open.empty())
    for (int next : edges[open.pop_back_val()])
      if (!found[next]) {
        found[next] = true;
        open.push_back(next);
      }
  return found;
}

/// Takes the order with these exposed times.
void BlockSchedule::take(Order candidate, std::vector<double> times) {
  order = std::move(candidate);
  exposed = std::move(times);
  total = std::accumulate(exposed.begin(), exposed.end(), 0.0);
  places.resize(order.size());
  for (auto [place, number] : llvm::enumerate(order))
    places[number] = int(place);
}

/// Takes the order if a rank waits less in it.
bool BlockSchedule::accept(Order candidate) {
  std::vector<double> times = exposedSeconds(steps, candidate);
  if (std::accumulate(times.begin(), times.end(), 0.0) >= total - kNothing)
    return false;
  take(std::move(candidate), std::move(times));
  ++moves;
  return true;
}

Order BlockSchedule::moveTo(const std::vector<bool> &moved, int to) const {
  Order result;
  auto append = [&](int begin, int end, bool which) {
    for (int place = begin; place < end; ++place)
      if (moved[order[place]] == which)
        result.push_back(order[place]);
  };
  int end = int(order.size());
  append(0, to, false);
  append(0, end, true);
  append(to, end, false);
  return result;
}

/// Starts the transfer before as much work as it waits for now, if its operands
/// are there.
void BlockSchedule::startEarlier(int transfer) {
  std::vector<bool> moved(ops.size(), false);
  moved[transfer] = true;
  while (isExposed(transfer)) {
    int first = 0, to = places[transfer];
    for (int need : needs[transfer])
      first = std::max(first, places[need] + 1);
    double work = 0;
    while (to > first && work < exposed[transfer])
      work += secondsOf(order[--to]);
    if (work == 0 || !accept(moveTo(moved, to)))
      return;
  }
}

/// Moves work from above the transfer to below it.
void BlockSchedule::deferWork(int transfer) {
  std::vector<bool> feeds = reached(transfer, needs);
  Order before(order.begin(), order.begin() + places[transfer]);
  int tries = kTries;
  for (int number : llvm::reverse(before)) {
    if (!isExposed(transfer) || tries == 0)
      return;
    if (feeds[number] || secondsOf(number) == 0 ||
        places[number] > places[transfer])
      continue;
    std::vector<bool> moved = reached(number, users);
    bool starts = false;
    for (size_t other = 0; other < ops.size(); ++other) {
      moved[other] = moved[other] && places[other] < places[transfer];
      starts |= moved[other] && steps[other].transfer > 0;
    }
    if (starts)
      continue;
    --tries;
    accept(moveTo(moved, places[transfer] + 1));
  }
}

/// Moves work from below the first use of the transfer to above it.
void BlockSchedule::advanceWork(int transfer) {
  std::vector<bool> depends = reached(transfer, users);
  auto isUse = [&](int number) {
    return llvm::is_contained(steps[number].waits, transfer);
  };
  int use = int(llvm::find_if(order, isUse) - order.begin());
  Order after(order.begin() + use, order.end());
  int tries = kTries;
  for (int number : after) {
    if (!isExposed(transfer) || tries == 0)
      return;
    use = int(llvm::find_if(order, isUse) - order.begin());
    if (depends[number] || secondsOf(number) == 0 || places[number] < use)
      continue;
    std::vector<bool> moved = reached(number, needs);
    for (size_t other = 0; other < ops.size(); ++other)
      moved[other] = moved[other] && places[other] >= use;
    --tries;
    accept(moveTo(moved, use));
  }
}

int BlockSchedule::improve() {
  for (int before = -1; before != moves;) {
    before = moves;
    for (int number : Order(order)) {
      if (isExposed(number))
        startEarlier(number);
      if (isExposed(number))
        deferWork(number);
      if (isExposed(number))
        advanceWork(number);
    }
  }
  return moves;
}

namespace {
struct ScheduleCollectives
    : mlir::rota::impl::ScheduleCollectivesBase<ScheduleCollectives> {
  void runOnOperation() override {
    Machine machine = machineOf(getOperation());
    getOperation().walk([&](func::FuncOp function) {
      for (Block &block : function.getBody()) {
        if (llvm::any_of(block,
                         [](Operation &op) { return op.getNumRegions() > 0; }))
          continue;
        BlockSchedule schedule(block, machine);
        if (int count = schedule.improve()) {
          schedule.apply();
          moves += count;
        }
      }
    });
  }
};
} // namespace
