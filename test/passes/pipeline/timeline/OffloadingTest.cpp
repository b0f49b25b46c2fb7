// SPDX-License-Identifier: Apache-2.0
//
// Copies of residuals: their places, the memory that they save, and errors of
// the verifier for damaged ones.
#include "passes/pipeline/timeline/Offloading.h"
#include "test/passes/pipeline/Damage.h"

using namespace rota::pipe;

namespace {

Timeline offloaded(const Timeline &timeline, int prefetch = 1) {
  return offloadResiduals(
      timeline, std::vector<bool>(timeline.shape.chunks(), true), prefetch);
}

TEST(Offloading, isValidForEveryTimeline) {
  std::mt19937 random(5);
  std::vector<Example> all = examples();
  for (int trial = 0; trial < 100; ++trial)
    all.push_back({"random", randomTimeline(random)});
  for (const Example &example : all)
    for (int prefetch : {0, 1, 3}) {
      ASSERT_EQ(verified(offloaded(example.timeline, prefetch)), "")
          << example.name;
      ASSERT_EQ(
          verified(offloaded(addCommunication(example.timeline), prefetch)), "")
          << example.name;
    }
}

// GPipe holds M activations. With copies it holds only those that are in use or
// being copied.
TEST(Offloading, holdsFewActivations) {
  auto simulation = simulate(offloaded(generated("gpipe", 3, 1, 9)), {});
  for (const RankUsage &rank : simulation->ranks) {
    EXPECT_LE(rank.peakLive, 2);
    EXPECT_GE(rank.peakOffloaded, 7);
  }
}

// A copy back that takes no longer than an action is hidden by a distance of 1.
TEST(Offloading, prefetchHidesTheCopyBack) {
  CostTable costs;
  costs.offload = costs.fetch = 1;
  Timeline timeline = generated("gpipe", 2, 1, 6);
  auto hidden = simulate(offloaded(timeline, 1), costs);
  auto exposed = simulate(offloaded(timeline, 0), costs);
  EXPECT_DOUBLE_EQ(hidden->ranks[1].exposed.fetches, 0);
  EXPECT_GT(exposed->ranks[1].exposed.fetches, 4);
}

TEST(Offloading, verifierRefusesWhatIsOutOfOrder) {
  EXPECT_EQ(verified(parsed("0F0,0OFFLOAD0,0FETCH0,0B0\n")), "");
  EXPECT_EQ(verified(parsed("0OFFLOAD0,0F0,0FETCH0,0B0\n")),
            "rank 0, position 0, 0OFFLOAD0: expected it after the F and before "
            "the backward of its chunk and microbatch\n");
  EXPECT_EQ(verified(parsed("0F0,0FETCH0,0OFFLOAD0,0B0\n")),
            "rank 0, position 1, 0FETCH0: expected an OFFLOAD of the residuals "
            "before it\n"
            "rank 0, position 3, 0B0: expected a FETCH of the residuals, which "
            "are offloaded at position 2\n"
            "rank 0, position 2, 0OFFLOAD0: expected a FETCH of the residuals "
            "after it\n");
  EXPECT_EQ(verified(parsed("0F0,0OFFLOAD0,0I0,0FETCH0,0W0\n")),
            "rank 0, position 2, 0I0: expected a FETCH of the residuals, which "
            "are offloaded at position 1\n");
  EXPECT_EQ(verified(parsed("0F0,0OFFLOAD0,0OFFLOAD0,0FETCH0,0B0\n")),
            "rank 0, position 2, 0OFFLOAD0: expected the action once, it is at "
            "position 1 already\n");
}

TEST(Offloading, verifierRefusesARemovedCopy) {
  auto make = [](std::mt19937 &random) {
    return offloaded(randomTimeline(random));
  };
  expectRefused(6, 100, make, removed,
                [](const Action &action) { return !isCompute(action.kind); });
}

} // namespace
