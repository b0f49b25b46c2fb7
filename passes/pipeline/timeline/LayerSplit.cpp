// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/timeline/LayerSplit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace rota::pipe {

std::vector<int64_t> leastLayers(const Shape &shape) {
  std::vector<int64_t> least(size_t(shape.stages) * shape.rows(), 1);
  least.front() = 0;
  if (!shape.hasUnpipelined)
    least.back() = 0;
  return least;
}

std::vector<int64_t> splitEvenly(int64_t layers,
                                 const std::vector<int64_t> &least) {
  auto chunks = static_cast<int64_t>(least.size());
  int64_t most = (layers + chunks - 1) / chunks;
  std::vector<int64_t> counts(chunks, most);
  int64_t missing = chunks * most - layers;
  for (int64_t i = 0; i < missing; ++i)
    --counts[i % 2 ? i / 2 : chunks - 1 - i / 2];
  // A chunk that needs a layer takes that of one that does not.
  for (int64_t needs = 0, gives = 0; needs < chunks; ++needs) {
    if (counts[needs] >= least[needs])
      continue;
    while (counts[gives] == least[gives])
      ++gives;
    std::swap(counts[needs], counts[gives]);
  }
  return counts;
}

static std::vector<PartWork> chunkCosts(const PartCosts &costs,
                                        const std::vector<int64_t> &counts) {
  std::vector<PartWork> sums;
  auto layer = costs.layers.begin();
  for (int64_t count : counts) {
    PartWork &sum = sums.emplace_back();
    for (int64_t i = 0; i < count; ++i)
      sum += *layer++;
  }
  sums.front() += costs.embed;
  sums.back() += costs.loss;
  return sums;
}

CostTable tableOf(const PartCosts &costs, const std::vector<int64_t> &counts) {
  CostTable table;
  for (const PartWork &cost : chunkCosts(costs, counts))
    table.chunks.push_back(
        {cost.forward, cost.input + cost.weight, cost.input, cost.weight});
  return table;
}

double makespanOf(const Timeline &timeline, const PartCosts &costs,
                  const std::vector<int64_t> &counts) {
  std::optional<Simulation> simulation =
      simulate(timeline, tableOf(costs, counts));
  return simulation ? simulation->makespan
                    : std::numeric_limits<double>::infinity();
}

namespace {

/// A descent from one split to the next shorter one.
class Descent {
public:
  Descent(const Timeline &timeline, const PartCosts &costs)
      : timeline(timeline), costs(costs), least(leastLayers(timeline.shape)),
        pipelined(static_cast<int>(least.size())) {
    for (const auto &row : timeline.ranks)
      actions += static_cast<int64_t>(row.size());
  }

  /// Takes `counts` where it is shorter than what there is.
  bool take(const std::vector<int64_t> &counts) {
    simulated += actions;
    double makespan = makespanOf(timeline, costs, counts);
    // Sums in another order are no improvement.
    if (makespan >= shortest * (1 - 1e-9))
      return false;
    shortest = makespan;
    best = counts;
    return true;
  }

  /// Moves one layer or, where no single move makes the makespan less, two.
  /// False when that makes nothing shorter.
  bool move() {
    std::vector<Move> moves = allMoves();
    for (const Move &first : moves)
      if (tryMoves({first}))
        return true;
    for (size_t i = 0; i < moves.size() && simulated < kBalanceActions; ++i)
      for (size_t j = i; j < moves.size(); ++j)
        if (tryMoves({moves[i], moves[j]}))
          return true;
    return false;
  }

  /// The split in which each layer that no chunk needs, taken as of mean cost,
  /// goes to the rank with the least work, and a rank's layers evenly to its
  /// chunks.
  std::vector<int64_t> fill(const std::vector<int64_t> &counts) const {
    std::vector<int64_t> filled = counts;
    std::ranges::copy(least, filled.begin());
    auto count = static_cast<double>(costs.layers.size());
    double mean = 0;
    for (const PartWork &layer : costs.layers)
      mean += layer.all() / count;
    std::vector<double> work(timeline.shape.stages);
    work[timeline.shape.rankOf(0)] += costs.embed.all();
    if (!timeline.shape.hasUnpipelined)
      work[timeline.shape.rankOf(pipelined - 1)] += costs.loss.all();
    std::vector<int> next(work.size()); // row of the rank that is next
    int64_t left = std::accumulate(counts.begin(), counts.begin() + pipelined,
                                   int64_t(0)) -
                   std::accumulate(least.begin(), least.end(), int64_t(0));
    for (; left > 0; --left) {
      int rank = std::min_element(work.begin(), work.end()) - work.begin();
      work[rank] += mean;
      int row = next[rank]++ % timeline.shape.repeats;
      ++filled[timeline.shape.chunkOf(rank, row)];
    }
    return filled;
  }

  std::vector<int64_t> best;

private:
  struct Move {
    int from, to; // chunks
  };

  /// All moves of a layer, from the rank with the most work to the one with the
  /// least first.
  std::vector<Move> allMoves() const {
    std::vector<double> work = rankCosts(best);
    std::vector<Move> moves;
    for (int from = 0; from < pipelined; ++from)
      for (int to = 0; to < pipelined; ++to)
        if (from != to)
          moves.push_back({from, to});
    auto order = [&](const Move &m) {
      return std::tuple(work[timeline.shape.rankOf(m.to)] -
                            work[timeline.shape.rankOf(m.from)],
                        m.from, m.to);
    };
    std::ranges::sort(moves, std::less(), order);
    return moves;
  }

  /// Takes the split after these moves where it is shorter. False when it is
  /// not, or nothing more is simulated.
  bool tryMoves(std::initializer_list<Move> moves) {
    std::vector<int64_t> counts = best;
    for (const Move &m : moves) {
      --counts[m.from];
      ++counts[m.to];
    }
    for (int chunk = 0; chunk < pipelined; ++chunk)
      if (counts[chunk] < least[chunk])
        return false;
    return simulated < kBalanceActions && take(counts);
  }

  std::vector<double> rankCosts(const std::vector<int64_t> &counts) const {
    std::vector<double> work(timeline.shape.stages);
    std::vector<PartWork> chunks = chunkCosts(costs, counts);
    for (int chunk = 0; chunk < pipelined; ++chunk)
      work[timeline.shape.rankOf(chunk)] += chunks[chunk].all();
    return work;
  }

  const Timeline &timeline;
  const PartCosts &costs;
  std::vector<int64_t> least; // by pipelined chunk
  int pipelined;              // chunks
  int64_t actions = 0, simulated = 0;
  double shortest = std::numeric_limits<double>::infinity();
};

} // namespace

std::vector<int64_t> balanceLayers(const Timeline &timeline,
                                   const PartCosts &costs,
                                   std::vector<int64_t> counts) {
  Descent descent(timeline, costs);
  descent.best = counts;
  descent.take(counts);
  descent.take(descent.fill(counts));
  while (descent.move()) {
  }
  return descent.best;
}

} // namespace rota::pipe
