// SPDX-License-Identifier: Apache-2.0
//
// Layers of chunks: even ones, and those of the least makespan.
#include "passes/pipeline/timeline/LayerSplit.h"
#include "test/passes/pipeline/Examples.h"

#include <functional>
#include <limits>
#include <numeric>

using namespace rota::pipe;

namespace {

using Counts = std::vector<int64_t>;

TEST(LayerSplit, evenSizesDifferByOne) {
  Counts least = leastLayers({4, 1, 4});
  EXPECT_EQ(least, (Counts{0, 1, 1, 0}));
  EXPECT_EQ(splitEvenly(8, least), (Counts{2, 2, 2, 2}));
  EXPECT_EQ(splitEvenly(10, least), (Counts{2, 3, 3, 2}));
  EXPECT_EQ(splitEvenly(11, least), (Counts{3, 3, 3, 2}));
  EXPECT_EQ(splitEvenly(4, least), (Counts{1, 1, 1, 1}));
  // The 126 layers of Llama 3.1 405B.
  Counts counts = splitEvenly(126, leastLayers({8, 8, 8}));
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), 2);
  EXPECT_EQ(counts.front() + counts.back(), 2);
}

// Only chunks with the embedding or the loss have no layers.
TEST(LayerSplit, evenLeavesTheEndsAlone) {
  EXPECT_EQ(splitEvenly(2, {0, 1, 1, 0}), (Counts{0, 1, 1, 0}));
  EXPECT_EQ(splitEvenly(3, {0, 1, 1, 0}), (Counts{1, 1, 1, 0}));
  EXPECT_EQ(splitEvenly(2, {0, 1, 1}), (Counts{0, 1, 1}));
  EXPECT_EQ(splitEvenly(1, {1, 0}), (Counts{1, 0}));
  EXPECT_EQ(splitEvenly(0, {0, 0}), (Counts{0, 0}));
  EXPECT_EQ(leastLayers({2, 1, 4, Placement::Loop, /*hasUnpipelined=*/true}),
            (Counts{0, 1}));
}

/// The least makespan of all splits into chunks of their least layers.
double leastMakespan(const Timeline &timeline, const PartCosts &costs) {
  double shortest = std::numeric_limits<double>::infinity();
  Counts counts = leastLayers(timeline.shape);
  Counts least = counts;
  std::function<void(size_t, int64_t)> fill = [&](size_t chunk, int64_t left) {
    if (chunk + 1 == counts.size()) {
      counts[chunk] = left;
      shortest = std::min(shortest, makespanOf(timeline, costs, counts));
      return;
    }
    int64_t others =
        std::accumulate(least.begin() + chunk + 1, least.end(), 0L);
    for (int64_t n = least[chunk]; n + others <= left; ++n) {
      counts[chunk] = n;
      fill(chunk + 1, left - n);
    }
  };
  fill(0, int64_t(costs.layers.size()));
  return shortest;
}

// Layers of one kind, of two in turn, and every sixth a long one; the loss as
// long as several layers.
TEST(LayerSplit, balancedIsTheBestOfAll) {
  struct Case {
    const char *schedule;
    int stages, repeats, microbatches, layers;
  };
  for (Case c : {Case{"gpipe", 3, 1, 5, 10},
                 {"1f1b", 4, 1, 8, 12},
                 {"1f1b", 3, 1, 4, 7},
                 {"circular", 2, 2, 4, 10},
                 {"interleaved-1f1b", 2, 3, 4, 11},
                 {"interleaved-1f1b", 4, 2, 8, 13}})
    for (double loss : {0.0, 1.5, 3.0, 9.0})
      for (const std::vector<double> &kinds :
           {std::vector<double>{1}, {1, 2}, {4, 1, 1, 1, 1, 1}}) {
        PartCosts costs;
        for (int i = 0; i < c.layers; ++i)
          costs.layers.push_back(kinds[i % kinds.size()]);
        costs.embed = 0.1;
        costs.loss = loss;
        Timeline timeline =
            generated(c.schedule, c.stages, c.repeats, c.microbatches);
        Counts even = splitEvenly(c.layers, leastLayers(timeline.shape));
        Counts balanced = balanceLayers(timeline, costs, even);
        EXPECT_EQ(std::accumulate(balanced.begin(), balanced.end(), 0L),
                  c.layers);
        double found = makespanOf(timeline, costs, balanced);
        EXPECT_LE(found, makespanOf(timeline, costs, even));
        double least = leastMakespan(timeline, costs);
        // Layers of one kind: the best of all; of several kinds: nearly.
        EXPECT_LE(found / least, kinds.size() == 1 ? 1.0 + 1e-9 : 1.04)
            << c.schedule << " " << c.stages << "x" << c.repeats << " loss "
            << loss << " kinds " << kinds.size();
      }
}

TEST(LayerSplit, balancedLeavesALongLossAlone) {
  Timeline timeline = generated("1f1b", 3, 1, 6);
  PartCosts costs{{1, 1, 1, 1, 1, 1}, 0, 4};
  EXPECT_EQ(balanceLayers(timeline, costs, {2, 2, 2}), (Counts{3, 3, 0}));
}

TEST(LayerSplit, balancedKeepsTheUnpipelinedChunk) {
  std::string error;
  Shape shape{2, 1, 4, Placement::Loop, /*hasUnpipelined=*/true};
  Timeline timeline = *makeTimeline("gpipe", {shape}, error);
  PartCosts costs{{1, 1, 1, 3, 1, 1}, 0, 0};
  EXPECT_EQ(balanceLayers(timeline, costs, {2, 2, 2}), (Counts{3, 1, 2}));
}

} // namespace
