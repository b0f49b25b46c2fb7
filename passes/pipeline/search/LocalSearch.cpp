// SPDX-License-Identifier: Apache-2.0
//
// See LocalSearch.h.
#include "passes/pipeline/search/LocalSearch.h"

#include "passes/pipeline/search/OrderRun.h"

#include <algorithm>

namespace rota::pipe {
namespace {

constexpr size_t kMemory = 64;

/// Actions `first` to `last` of a rank, without idle time between them.
struct CriticalBlock {
  int rank;
  int first, last;
};

/// Takes the action at `from` out of its row and puts it in at `to`.
struct Move {
  int rank;
  int from, to;
  void apply(Order &order) const {
    auto row = order[rank].begin();
    if (from < to)
      std::rotate(row + from, row + from + 1, row + to + 1);
    else
      std::rotate(row + to, row + from, row + from + 1);
  }
  Move back() const { return {rank, to, from}; }
};

class OrderSearch {
public:
  OrderSearch(const Problem &problem, Order order, std::mt19937 &random)
      : problem(problem), random(random), order(std::move(order)),
        orderRun(problem), positions(problem.actions()),
        counts(problem.lanes()) {}

  Order run(double target, int64_t steps, Budget &budget) {
    double least = evaluate();
    best = order;
    accepted.assign(kMemory, current);
    findBlocks();
    for (int64_t step = 0; step < steps && least > target; ++step) {
      if (blocks.empty() || !budget.spend(problem.actions()))
        break;
      Move move = randomMove();
      if (move.from == move.to)
        continue;
      move.apply(order);
      double before = current;
      double makespan = isValid(move) ? evaluate() : kNever;
      double &old = accepted[step % kMemory];
      if (makespan == kNever || (current > before && current > old)) {
        move.back().apply(order);
        current = before;
        old = std::min(old, current);
        continue;
      }
      old = std::min(old, current);
      // Sums in another order are no improvement.
      if (makespan < least * (1 - 1e-9)) {
        least = makespan;
        best = order;
      }
      findBlocks();
    }
    return std::move(best);
  }

private:
  const Problem &problem;
  std::mt19937 &random;
  Order order, best;
  OrderRun orderRun;
  double current = kNever;      // objective
  std::vector<double> accepted; // objectives of the last kMemory orders
  std::vector<int> positions; // positions of actions: by lane, then microbatch
  std::vector<int> counts;    // scratch: of each lane
  std::vector<CriticalBlock> blocks; // blocks of two or more on a critical path

  int below(int count) { return static_cast<int>(random() % unsigned(count)); }

  /// Sets the objective of the order: its makespan and, to break ties, a little
  /// of the mean end of the ranks. Returns the makespan.
  double evaluate() {
    double makespan = orderRun.run(order);
    current = makespan == kNever ? kNever
                                 : makespan + 0.01 * orderRun.sumOfEnds() /
                                                  double(problem.shape.stages);
    return makespan;
  }

  /// Microbatches of a lane do not pass each other: an action of the same lane
  /// between `from` and `to` makes the move one to its place.
  Move randomMove() {
    const CriticalBlock &block = blocks[below(int(blocks.size()))];
    const std::vector<int> &row = order[block.rank];
    int size = block.last - block.first + 1;
    Move move{block.rank, block.first + below(size), 0};
    // To the front or after the block mostly, where a path gets shorter.
    switch (below(4)) {
    case 0:
      move.to = block.first;
      break;
    case 1:
      move.to = block.last;
      break;
    case 2:
      move.to = block.first + below(size);
      break;
    default:
      move.to = std::min(block.last + 1 + below(8), int(row.size()) - 1);
    }
    int step = move.to < move.from ? -1 : 1, lane = row[move.from];
    for (int i = move.from; i != move.to; i += step)
      if (row[i + step] == lane) {
        move.to = i;
        break;
      }
    return move;
  }

  /// True when the row keeps the bound and takes each W after its I.
  bool isValid(const Move &move) {
    const std::vector<int> &row = order[move.rank];
    int lane = row[move.to];
    bool takesMemory = problem.isForward(lane) || problem.frees(lane);
    return !takesMemory || peakActivations(problem, row) <= problem.bound;
  }

  size_t indexOf(int lane, int microbatch) const {
    return size_t(lane) * problem.microbatches + microbatch;
  }

  /// Follows a critical path from its end to time 0.
  void findBlocks() {
    blocks.clear();
    std::ranges::fill(counts, 0);
    const auto &ends = orderRun.ends();
    int rank = 0;
    for (size_t other = 0; other < order.size(); ++other) {
      for (size_t i = 0; i < order[other].size(); ++i)
        positions[indexOf(order[other][i], counts[order[other][i]]++)] = int(i);
      if (ends[other].back() > ends[rank].back())
        rank = int(other);
    }
    // From here on counts[lane] is the number of its actions up to `position`
    // on the ranks that the path has left, or all.
    int position = int(order[rank].size()) - 1;
    CriticalBlock block{rank, position, position};
    while (position >= 0) {
      int lane = order[rank][position];
      int microbatch = microbatchAt(rank, position);
      double before = position > 0 ? ends[rank][position - 1] : 0;
      bool waits =
          !problem.isWeight(lane) && lane > 0 &&
          orderRun.arrival(lane, microbatch) >= before &&
          (orderRun.arrival(lane, microbatch) > before || below(2) == 0);
      block.first = position;
      if (!waits) {
        --position;
        continue;
      }
      addBlock(block);
      rank = problem.rankOf[lane - 1];
      position = positions[indexOf(lane - 1, microbatch)];
      block = {rank, position, position};
    }
    addBlock(block);
  }

  void addBlock(const CriticalBlock &block) {
    if (block.first < block.last)
      blocks.push_back(block);
  }

  /// The microbatch of an action: the path reaches each row from its end, so
  /// the search in the lane's positions is short.
  int microbatchAt(int rank, int position) const {
    int lane = order[rank][position];
    auto first = positions.begin() + int64_t(indexOf(lane, 0));
    return static_cast<int>(
        std::lower_bound(first, first + problem.microbatches, position) -
        first);
  }
};

} // namespace

Order improveOrder(const Problem &problem, Order order, double target,
                   int64_t steps, std::mt19937 &random, Budget &budget) {
  return OrderSearch(problem, std::move(order), random)
      .run(target, steps, budget);
}

} // namespace rota::pipe
