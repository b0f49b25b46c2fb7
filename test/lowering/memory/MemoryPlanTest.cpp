// SPDX-License-Identifier: Apache-2.0
//
// The memory plan of every schedule at many shapes, against the verifier that
// runs it on names; and plans with a fault, which the verifier must refuse.
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/ActionTemplates.h"
#include "lowering/memory/FreeList.h"
#include "lowering/memory/PlanVerifier.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/Communication.h"
#include "runtime/program/Verify.h"
#include "test/lowering/memory/Faults.h"
#include "test/lowering/memory/MadeLayouts.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::memory;
using namespace rota::test;

namespace {

struct Case {
  ModelLayout layout;
  ChunkTable chunks;
  pipe::Timeline timeline;
  Program program;
  std::string error;
};

/// Plans one case; false when the schedule does not exist at that shape.
bool makeCase(const std::string &schedule, pipe::Shape shape, bool split,
              int layers, std::mt19937 &random, Case &result,
              bool pairs = false, bool frozen = false) {
  std::string error;
  pipe::ScheduleRequest request{shape, 1, split};
  request.pairs = pairs;
  auto timeline = pipe::makeTimeline(schedule, request, error);
  if (!timeline)
    return false;
  result.timeline = pipe::addCommunication(*timeline);
  // Some schedules split their backwards themselves.
  split = pipe::hasAny(*timeline, ActionKind::BackwardInput);
  result.layout = makeLayout({.split = split,
                              .logits = random() % 2 != 0,
                              .samples = random() % 2 != 0,
                              .auxiliary = random() % 2 != 0,
                              .blocks = random() % 2 != 0,
                              .frozen = frozen},
                             random);
  result.chunks = makeChunks(shape, layers);
  EXPECT_TRUE(planMemory(result.layout, result.chunks, result.timeline,
                         result.program, result.error))
      << result.error;
  return true;
}

bool accepts(Case &c) {
  return verifyPlan(c.layout, c.chunks, c.timeline, c.program, c.error);
}

TEST(MemoryPlan, EveryScheduleAtManyShapes) {
  std::mt19937 random(1);
  int cases = 0;
  for (const pipe::Schedule &schedule : pipe::allSchedules())
    for (auto [stages, repeats, microbatches] : {std::tuple{1, 1, 1},
                                                 {1, 1, 3},
                                                 {1, 2, 3},
                                                 {2, 1, 5},
                                                 {3, 1, 6},
                                                 {2, 2, 4},
                                                 {4, 2, 8},
                                                 {3, 2, 9},
                                                 {4, 3, 4}})
      for (bool split : {false, true})
        for (int layers : {0, 1, 3})
          for (auto placement : {pipe::Placement::Loop, pipe::Placement::V}) {
            Case c;
            pipe::Shape shape{stages, repeats, microbatches, placement};
            if (!makeCase(schedule.name, shape, split, layers, random, c,
                          /*pairs=*/false, /*frozen=*/cases % 2 != 0))
              continue;
            ++cases;
            EXPECT_TRUE(accepts(c))
                << schedule.name << " " << stages << " " << repeats << " "
                << microbatches << ": " << c.error;
            EXPECT_TRUE(verify(c.program, c.error)) << c.error;
          }
  EXPECT_GT(cases, 60);
}

/// Bytes of a region, over all stages.
int64_t regionBytes(const Program &program, const std::string &use) {
  int64_t bytes = 0;
  for (const Stage &stage : program.stages)
    for (const Region &region : stage.regions)
      if (region.use == use)
        bytes += region.bytes;
  return bytes;
}

TEST(MemoryPlan, FrozenParametersHaveNoGradientAndNoMaster) {
  int64_t allMasters = 0; // of bf16 parameters, before they are frozen
  for (int seed : {1, 2, 3, 4}) {
    std::mt19937 random(seed);
    Case c;
    ASSERT_TRUE(makeCase("1f1b", {2, 1, 4}, false, 2, random, c));
    for (ParameterBlock *block :
         {&c.layout.embed.block, &c.layout.kinds[0].block,
          &c.layout.kinds[1].block, &c.layout.loss.block}) {
      for (ParameterBlock::Entry &entry : block->entries)
        entry.gradient = -1;
      block->gradientBytes = 0;
    }
    for (Parameter &p : c.layout.program.parameters) {
      p.isFrozen = true;
      p.states.clear();
      p.stateBytes = 0;
      p.updateTask = p.squareTask = -1;
    }
    auto weights = [&] {
      return regionBytes(c.program, "parameters") +
             regionBytes(c.program, "compute copies");
    };
    int64_t before = weights();
    ASSERT_TRUE(planMemory(c.layout, c.chunks, c.timeline, c.program, c.error));
    EXPECT_TRUE(accepts(c)) << c.error;
    EXPECT_TRUE(verify(c.program, c.error)) << c.error;
    EXPECT_EQ(regionBytes(c.program, "gradients"), 0);
    EXPECT_EQ(regionBytes(c.program, "optimizer"), 0);
    int64_t masters = 0;
    for (const Stage &stage : c.program.stages)
      for (const Update &update : stage.updates) {
        EXPECT_TRUE(update.gradients.empty());
        EXPECT_EQ(update.master, update.stored);
        const Parameter &p = c.program.parameters[update.parameter];
        if (p.compute == ElementType::BF16)
          masters += alignUp(4 * elementCount(p));
      }
    EXPECT_EQ(weights(), before - masters);
    allMasters += masters;
  }
  EXPECT_GT(allMasters, 0);
}

TEST(MemoryPlan, TiedParameterIsUpdatedOnce) {
  std::mt19937 random(2);
  for (int stages : {1, 4}) {
    Case c;
    ASSERT_TRUE(makeCase("gpipe", {stages, 1, 4}, false, 1, random, c));
    int tied = c.layout.loss.block.entries[0].parameter, updates = 0;
    for (const Stage &rank : c.program.stages)
      for (const Update &update : rank.updates)
        if (update.parameter == tied) {
          ++updates;
          ASSERT_EQ(update.gradients.size(), 2u);
          EXPECT_EQ(update.gradients[0].stage, 0);
          EXPECT_EQ(update.gradients[1].stage, stages - 1);
          EXPECT_EQ(update.copies.size(), stages > 1 ? 1u : 0u);
        }
    EXPECT_EQ(updates, 1);
  }
}

TEST(MemoryPlan, FewerMicrobatchesLiveWithOneFOneB) {
  std::mt19937 random(3), same(3);
  Case gpipe, alternating;
  pipe::Shape shape{4, 1, 16};
  ASSERT_TRUE(makeCase("gpipe", shape, false, 2, random, gpipe));
  ASSERT_TRUE(makeCase("1f1b", shape, false, 2, same, alternating));
  EXPECT_LT(alternating.program.stages[3].arenaBytes,
            gpipe.program.stages[3].arenaBytes);
}

TEST(MemoryPlan, FaultsAreRefused) {
  std::mt19937 random(4);
  Case good;
  ASSERT_TRUE(makeCase("circular", {3, 2, 6}, true, 2, random, good));
  ASSERT_TRUE(accepts(good)) << good.error;
  int refused = 0, tried = 0;
  for (size_t r = 0; r < good.program.stages.size(); ++r)
    for (int a = 0; a < int(good.program.stages[r].actions.size()); ++a) {
      auto expectRefused = [&](auto change) {
        Case bad = good;
        change(bad.program.stages[r]);
        ++tried;
        refused += !accepts(bad);
      };
      auto expectCallsRefused = [&](auto change) {
        expectRefused(
            [&](Stage &stage) { change(ownTemplate(stage, a).calls); });
      };
      const Stage &stage = good.program.stages[r];
      for (int i = 0; i < stage.actions[a].waitCount; ++i)
        expectRefused([&](Stage &x) { dropWait(x, a, i); });
      const std::vector<Call> &calls = stage.templateOf(a).calls;
      if (!calls.empty()) {
        expectCallsRefused([](std::vector<Call> &x) { x.pop_back(); });
        if (!calls[0].frame[Input].isNone())
          expectCallsRefused([](std::vector<Call> &x) {
            x[0].frame[Input].offset += kAlignment;
          });
        if (!calls[0].frame[Output].isNone())
          expectCallsRefused(
              [](std::vector<Call> &x) { x[0].frame[Output].offset += 1; });
      }
    }
  EXPECT_GT(tried, 100);
  EXPECT_EQ(refused, tried);
}

void expectFaultsRefused(Case &good) {
  ASSERT_TRUE(accepts(good)) << good.error;
  FaultReport report =
      tryFaults(good.layout, good.chunks, good.timeline, good.program);
  EXPECT_GT(report.tried, 2000);
  for (const std::string &fault : report.accepted)
    ADD_FAILURE() << fault;
}

TEST(MemoryPlan, EveryChangedFieldIsRefused) {
  std::mt19937 random(7);
  for (bool split : {false, true}) {
    Case good;
    ASSERT_TRUE(makeCase("circular", {2, 1, 2}, split, 3, random, good));
    expectFaultsRefused(good);
    Case alone;
    ASSERT_TRUE(makeCase("circular", {3, 1, 3}, split, 0, random, alone));
    expectFaultsRefused(alone);
  }
}

/// The embedding alone keeps nothing from F to B, the loss alone its input.
TEST(MemoryPlan, AnEndAloneHoldsNoActivationOfLayers) {
  auto activations = [](int microbatches, int stage) {
    std::mt19937 random(13);
    Case c;
    EXPECT_TRUE(makeCase("gpipe", {3, 1, microbatches}, false, 0, random, c));
    EXPECT_TRUE(accepts(c)) << c.error;
    int64_t bytes = 0;
    for (const Region &region : c.program.stages[stage].regions)
      if (region.use == "activations")
        bytes = region.bytes;
    return std::pair(bytes, alignUp(c.layout.activationBytes));
  };
  EXPECT_EQ(activations(16, 0).first, activations(4, 0).first);
  auto [bytes, activation] = activations(16, 2);
  EXPECT_EQ(bytes, activations(4, 2).first + 12 * activation);
}

TEST(MemoryPlan, PairsAtManyShapes) {
  std::mt19937 random(9);
  int cases = 0;
  for (const char *name : {"dualpipev", "interleaved-overlap"})
    for (auto [stages, repeats, microbatches] : {std::tuple{1, 2, 3},
                                                 {2, 1, 6},
                                                 {2, 2, 4},
                                                 {3, 2, 9},
                                                 {4, 2, 8},
                                                 {3, 3, 6}})
      for (bool split : {false, true})
        for (int layers : {0, 1, 3}) {
          Case c;
          pipe::Shape shape = pipe::demandedShape(
              name, pipe::Shape{stages, repeats, microbatches});
          if (!makeCase(name, shape, split, layers, random, c, true))
            continue;
          ++cases;
          EXPECT_TRUE(pipe::hasPairs(c.timeline)) << name << " " << stages;
          EXPECT_TRUE(accepts(c)) << name << " " << stages << ": " << c.error;
          EXPECT_TRUE(verify(c.program, c.error)) << c.error;
        }
  EXPECT_GE(cases, 60);
}

TEST(MemoryPlan, EveryChangedFieldOfAPairIsRefused) {
  std::mt19937 random(10);
  Case good;
  ASSERT_TRUE(makeCase("interleaved-overlap", {2, 1, 4}, false, 2, random, good,
                       /*pairs=*/true));
  expectFaultsRefused(good);
}

/// The halves of a pair use nothing that the other one writes, although the
/// plan of the same actions in order gives bytes of one to the other.
TEST(MemoryPlan, APlanWithoutPairsIsNoPlanOfPairs) {
  std::mt19937 random(11), same(11);
  Case pairs, apart;
  pipe::Shape shape{2, 2, 4};
  ASSERT_TRUE(makeCase("interleaved-overlap", shape, false, 2, random, pairs,
                       /*pairs=*/true));
  ASSERT_TRUE(makeCase("interleaved-overlap", shape, false, 2, same, apart));
  EXPECT_LT(apart.program.stages[0].arenaBytes,
            pairs.program.stages[0].arenaBytes);
  apart.timeline = pairs.timeline;
  EXPECT_FALSE(accepts(apart));
}

TEST(MemoryPlan, HalvesOfAPairShareNoBytes) {
  std::mt19937 random(12);
  Case good;
  ASSERT_TRUE(makeCase("interleaved-overlap", {1, 1, 4}, false, 1, random, good,
                       /*pairs=*/true));
  ASSERT_TRUE(accepts(good)) << good.error;
  Stage &stage = good.program.stages[0];
  int first = 0;
  while (!stage.templateOf(first).startsPair)
    ++first;
  ASSERT_EQ(stage.kindOf(first), ActionKind::Backward);
  // The residuals that the backward has read are not needed any more, so the
  // forward could write there if it came later.
  int64_t residuals = stage.slotsOf(first)[StashSlot];
  stage.slots[stage.actions[first + 1].firstSlot + StashSlot] = residuals;
  EXPECT_FALSE(accepts(good));
  EXPECT_NE(good.error.find("apart from what the other half of the pair uses"),
            std::string::npos)
      << good.error;
}

/// Templates stand once: 32 microbatches add none to those of 8.
TEST(MemoryPlan, TemplatesDoNotDependOnMicrobatches) {
  for (const char *schedule : {"circular", "1f1b", "interleaved-1f1b"}) {
    std::vector<size_t> counts;
    for (int microbatches : {8, 32}) {
      std::mt19937 random(8);
      Case c;
      int repeats = schedule == std::string("1f1b") ? 1 : 2;
      ASSERT_TRUE(
          makeCase(schedule, {4, repeats, microbatches}, false, 2, random, c));
      size_t count = 0;
      for (const Stage &stage : c.program.stages)
        count += stage.templates.size();
      counts.push_back(count);
    }
    EXPECT_EQ(counts[0], counts[1]) << schedule;
  }
}

TEST(MemoryPlan, AuxiliaryLossesHavePlacesOfTheirOwn) {
  std::mt19937 random(6);
  Case good;
  do
    ASSERT_TRUE(makeCase("circular", {3, 2, 6}, true, 2, random, good));
  while (good.layout.lossWeight < 0);
  ASSERT_TRUE(accepts(good)) << good.error;
  int forwards = 0;
  for (Stage &stage : good.program.stages) {
    ASSERT_EQ(stage.auxiliarySums.size(), 2u); // two of four layers
    ASSERT_EQ(stage.observedTables.size(), 2u);
    EXPECT_EQ(stage.startMicrobatches.size(), stage.loss >= 0 ? 6u : 0u);
    for (int a = 0; a < int(stage.actions.size()); ++a)
      for (Call &call : ownTemplate(stage, a).calls) {
        if (call.frame[Auxiliary].isNone())
          continue;
        ++forwards;
        call.frame[Auxiliary].offset += 4;
        EXPECT_FALSE(accepts(good));
        call.frame[Auxiliary].offset -= 4;
        call.frame[Observed].offset += 64;
        EXPECT_FALSE(accepts(good));
        call.frame[Observed].offset -= 64;
      }
    for (Call &call : stage.startCalls) {
      call.frame[Loss].offset += 8;
      EXPECT_FALSE(accepts(good));
      call.frame[Loss].offset -= 8;
    }
  }
  EXPECT_EQ(forwards, 6 * 6);
  good.program.stages[1].auxiliarySums[0].offset =
      good.program.stages[1].auxiliarySums[1].offset;
  EXPECT_FALSE(accepts(good));
}

TEST(MemoryPlan, ObservedTablesOverlapNothing) {
  std::mt19937 random(6);
  Case good;
  do
    ASSERT_TRUE(makeCase("circular", {3, 2, 6}, true, 2, random, good));
  while (good.layout.program.observations.empty());
  ASSERT_TRUE(accepts(good)) << good.error;
  good.program.stages[1].observedTables[0].offset =
      good.program.stages[1].observedTables[1].offset;
  EXPECT_FALSE(accepts(good));
}

TEST(FreeList, BlocksNeverOverlap) {
  std::mt19937 random(5);
  FreeList list;
  std::map<int64_t, int64_t> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 2) {
      int64_t bytes = 64 * int64_t(random() % 20 + 1);
      int64_t offset = list.allocate(bytes);
      auto next = live.lower_bound(offset);
      if (next != live.end())
        ASSERT_LE(offset + bytes, next->first);
      if (next != live.begin()) {
        --next;
        ASSERT_LE(next->first + next->second, offset);
      }
      live[offset] = bytes;
      ASSERT_LE(offset + bytes, list.peak());
    } else {
      auto victim = std::next(live.begin(), random() % live.size());
      list.free(victim->first, victim->second);
      live.erase(victim);
    }
  }
  while (!live.empty()) {
    list.free(live.begin()->first, live.begin()->second);
    live.erase(live.begin());
  }
  EXPECT_EQ(list.allocate(list.peak()), 0); // one gap again
}

} // namespace
