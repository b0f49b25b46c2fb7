// SPDX-License-Identifier: Apache-2.0
//
// Plans of timelines that gather weights, reduce gradients and move residuals
// to host memory, written by hand and at random, against the verifier; and such
// plans with a fault, which it must refuse.
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/PlanVerifier.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/UpdateExchange.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "runtime/program/Verify.h"
#include "test/lowering/memory/Faults.h"
#include "test/lowering/memory/MadeLayouts.h"

#include <gtest/gtest.h>
#include <set>
#include <sstream>

using namespace rota;
using namespace rota::memory;
using namespace rota::test;
using Row = std::vector<Action>;
using Kind = ActionKind;

namespace {

struct Case {
  ModelLayout layout;
  ChunkTable chunks;
  pipe::Timeline timeline;
  Program program;
  std::string error;

  bool plan() { return planMemory(layout, chunks, timeline, program, error); }
  bool accepts() {
    return verifyPlan(layout, chunks, timeline, program, error);
  }
};

/// A timeline out of text, one row a stage.
Case makeCase(pipe::Shape shape, const char *rows, LayoutOptions options,
              int layers = 1) {
  Case c;
  std::string error;
  auto ranks = pipe::parseCsv(rows, error);
  EXPECT_TRUE(ranks) << error;
  c.timeline = {shape, *ranks};
  std::mt19937 random(1);
  options.stages = shape.stages;
  c.layout = makeLayout(options, random);
  c.chunks = makeChunks(shape, layers);
  return c;
}

bool addsGradient(const Action &a) {
  return a.kind == Kind::Backward || a.kind == Kind::BackwardWeight ||
         (a.kind == Kind::BackwardInput && a.chunk == 0);
}

/// Has UNSHARD before each chunk's use unless it is gathered, and more of them
/// ahead, RESHARD and REDUCE_GRAD where that is legal, at random.
Row addWindows(const Row &row, std::mt19937 &random) {
  Row result;
  std::set<int> gathered;
  auto chance = [&](int n) { return random() % n == 0; };
  for (size_t i = 0; i < row.size(); ++i) {
    const Action &a = row[i];
    if (!isCompute(a.kind)) {
      result.push_back(a);
      continue;
    }
    if (gathered.insert(a.chunk).second)
      result.push_back({a.chunk, Kind::Unshard});
    result.push_back(a);
    std::set<int> later;
    bool gradientLater = false;
    for (size_t j = i + 1; j < row.size(); ++j) {
      if (isCompute(row[j].kind))
        later.insert(row[j].chunk);
      gradientLater |= row[j].chunk == a.chunk && addsGradient(row[j]);
    }
    if (addsGradient(a) && (!gradientLater || chance(4)))
      result.push_back({a.chunk, Kind::ReduceGrad});
    for (int chunk : std::set<int>(gathered))
      if (chance(3)) {
        result.push_back({chunk, Kind::Reshard});
        gathered.erase(chunk);
      }
    for (int chunk : later)
      if (chance(4) && gathered.insert(chunk).second)
        result.push_back({chunk, Kind::Unshard});
  }
  return result;
}

/// Moves the residuals of some microbatches out and back between F and B.
Row addOffloads(const Row &row, std::mt19937 &random) {
  // By the action that they stand before; offloads come first.
  std::vector<Row> offloads(row.size() + 1), fetches(row.size() + 1);
  for (size_t f = 0; f < row.size(); ++f)
    for (size_t b = f + 1; b < row.size(); ++b) {
      bool backward =
          row[b].kind == Kind::Backward || row[b].kind == Kind::BackwardInput;
      if (row[f].kind != Kind::Forward || !backward ||
          row[f].chunk != row[b].chunk ||
          row[f].microbatch != row[b].microbatch || random() % 4 == 0)
        continue;
      size_t out = f + 1 + random() % (b - f);
      size_t back = out + random() % (b - out + 1);
      offloads[out].push_back({row[f].chunk, Kind::Offload, row[f].microbatch});
      fetches[back].push_back({row[f].chunk, Kind::Fetch, row[f].microbatch});
    }
  Row result;
  for (size_t i = 0; i < row.size(); ++i) {
    for (const Row &list : {offloads[i], fetches[i]})
      result.insert(result.end(), list.begin(), list.end());
    result.push_back(row[i]);
  }
  return result;
}

/// False when the schedule does not exist at that shape.
bool makeRandomCase(const std::string &schedule, pipe::Shape shape,
                    LayoutOptions options, int layers, std::mt19937 &random,
                    Case &c) {
  std::string error;
  auto timeline =
      pipe::makeTimeline(schedule, {shape, 1, options.split}, error);
  if (!timeline)
    return false;
  // Some schedules split their backwards themselves.
  options.split = pipe::hasAny(*timeline, ActionKind::BackwardInput);
  c.timeline = pipe::addCommunication(*timeline);
  for (Row &row : c.timeline.ranks) {
    if (options.offload)
      row = addOffloads(row, random);
    if (options.windows)
      row = addWindows(row, random);
  }
  if (options.zero)
    c.timeline =
        pipe::exchangeUpdates(c.timeline, {1 + int(random() % 2), true});
  options.stages = shape.stages;
  c.layout = makeLayout(options, random);
  c.chunks = makeChunks(shape, layers);
  EXPECT_TRUE(c.plan()) << c.error;
  return true;
}

const Region *findRegion(const std::vector<Region> &regions, const char *use) {
  for (const Region &region : regions)
    if (region.use == use)
      return &region;
  return nullptr;
}

TEST(WindowPlan, RandomTimelinesOfEverySchedule) {
  std::mt19937 random(1);
  int cases = 0;
  for (const pipe::Schedule &schedule : pipe::allSchedules())
    for (auto [stages, repeats, microbatches] : {std::tuple{1, 1, 3},
                                                 {1, 2, 3},
                                                 {2, 1, 5},
                                                 {3, 1, 6},
                                                 {2, 3, 4},
                                                 {3, 2, 9}})
      for (int flags = 0; flags < 32; ++flags)
        for (int layers : {0, 1, 3}) {
          LayoutOptions options;
          options.split = flags & 1;
          options.windows = flags & 2;
          options.zero = flags & 4;
          options.offload = flags & 8;
          options.offloadInputs = random() % 2;
          options.logits = random() % 2;
          options.samples = random() % 2;
          options.auxiliary = random() % 2;
          options.blocks = random() % 2;
          options.frozen = random() % 2;
          pipe::Shape shape{stages, repeats, microbatches};
          shape.hasUnpipelined = flags & 16;
          Case c;
          if (!makeRandomCase(schedule.name, shape, options, layers, random, c))
            continue;
          ++cases;
          EXPECT_TRUE(c.accepts())
              << schedule.name << " " << stages << " " << repeats << " "
              << microbatches << " " << flags << ": " << c.error;
          EXPECT_TRUE(verify(c.program, c.error)) << c.error;
        }
  EXPECT_GT(cases, 500);
}

TEST(WindowPlan, FaultsAreRefused) {
  std::mt19937 random(4);
  LayoutOptions options;
  options.split = options.windows = options.zero = options.offload = true;
  options.offloadInputs = true;
  options.sizes = 50; // so that steps of 64 bytes meet other values
  Case good;
  ASSERT_TRUE(makeRandomCase("circular", {3, 2, 6}, options, 2, random, good));
  ASSERT_TRUE(good.accepts()) << good.error;
  std::map<std::string, int> tried, refused;
  for (size_t s = 0; s < good.program.stages.size(); ++s)
    for (int a = 0; a < int(good.program.stages[s].actions.size()); ++a) {
      auto expectStageRefused = [&](const char *what, auto change) {
        Case bad = good;
        change(bad.program.stages[s]);
        ++tried[what];
        refused[what] += !bad.accepts();
      };
      auto expectRefused = [&](const char *what, auto change) {
        expectStageRefused(
            what, [&](Stage &stage) { change(ownTemplate(stage, a)); });
      };
      const Stage &stage = good.program.stages[s];
      const ActionTemplate &action = stage.templateOf(a);
      for (int i = 0; i < stage.actions[a].waitCount; ++i)
        expectStageRefused("wait", [&](Stage &x) { dropWait(x, a, i); });
      for (size_t i = 0; i < action.clears.size(); ++i)
        expectRefused("clear", [&](ActionTemplate &x) {
          x.clears.erase(x.clears.begin() + i);
        });
      if (!action.transfers.empty()) {
        expectRefused("transfer",
                      [](ActionTemplate &x) { x.transfers.pop_back(); });
        expectRefused("source", [](ActionTemplate &x) {
          x.transfers[0].source.offset += kAlignment;
        });
        expectRefused("destination", [](ActionTemplate &x) {
          x.transfers[0].destination.offset += kAlignment;
        });
        if (action.transfers[0].collective >= 0)
          expectRefused("collective",
                        [](ActionTemplate &x) { ++x.transfers[0].collective; });
      }
      for (int field : {Parameters, Gradients, Offloaded})
        if (!action.calls.empty() && !action.calls[0].frame[field].isNone() &&
            (field == Parameters || action.kind != ActionKind::Forward) &&
            (field != Gradients || action.kind == ActionKind::BackwardWeight))
          expectRefused("frame", [&](ActionTemplate &x) {
            x.calls[0].frame[field].offset += kAlignment;
          });
    }
  for (const char *what : {"wait", "clear", "transfer", "source", "destination",
                           "collective", "frame"}) {
    EXPECT_GT(tried[what], 10) << what;
    EXPECT_EQ(refused[what], tried[what]) << what;
  }
}

TEST(WindowPlan, EveryChangedFieldIsRefused) {
  std::mt19937 random(5);
  for (int flags = 0; flags < 4; ++flags) {
    LayoutOptions options;
    options.split = options.logits = flags & 1;
    options.windows = options.offload = true;
    options.offloadInputs = options.auxiliary = true;
    options.blocks = flags & 2;
    options.sizes = 50; // so that steps of 64 bytes meet other values
    pipe::Shape shape{2, 1, 2};
    shape.hasUnpipelined = flags & 2;
    Case good;
    ASSERT_TRUE(makeRandomCase("circular", shape, options, 2, random, good));
    ASSERT_TRUE(good.accepts()) << good.error;
    FaultReport report =
        tryFaults(good.layout, good.chunks, good.timeline, good.program);
    EXPECT_GT(report.tried, 3000);
    for (const std::string &fault : report.accepted)
      ADD_FAILURE() << flags << ", " << fault;
  }
}

/// Both ends share parameter 4. It is refreshed for the first chunk, and
/// its gradient, which has two terms, is left for the step's end.
TEST(WindowPlan, UpdatesAreExchangedInTheTimeline) {
  const char *rows = "0REFRESH,1REFRESH,0F0,1F0,1B0,1SUM_GRAD,0B0,0SUM_GRAD\n";
  Case c = makeCase({1, 2, 1}, rows, {.zero = true});
  ASSERT_TRUE(c.plan()) << c.error;
  EXPECT_TRUE(c.accepts()) << c.error;
  EXPECT_TRUE(verify(c.program, c.error)) << c.error;
  const Stage &stage = c.program.stages[0];
  auto parameters = [&](int action) {
    std::set<int> found;
    for (int update : stage.templateOf(action).updates)
      found.insert(stage.updates[update].parameter);
    return found;
  };
  EXPECT_EQ(parameters(0), (std::set{0, 1, 4, 5}));
  EXPECT_EQ(parameters(1), (std::set{2, 3, 6}));
  EXPECT_EQ(parameters(5), (std::set{2, 3, 6}));
  EXPECT_EQ(parameters(7), (std::set{0, 1, 5}));
  EXPECT_EQ(std::vector(stage.waitsOf(2).begin(), stage.waitsOf(2).end()),
            std::vector{0});
  EXPECT_EQ(std::vector(stage.waitsOf(3).begin(), stage.waitsOf(3).end()),
            std::vector{1});
}

TEST(WindowPlan, FaultsOfExchangesAreRefused) {
  std::mt19937 random(6);
  for (bool windows : {false, true}) {
    LayoutOptions options;
    options.windows = windows;
    options.zero = options.split = true;
    Case good;
    ASSERT_TRUE(
        makeRandomCase("circular", {2, 2, 4}, options, 2, random, good));
    ASSERT_TRUE(good.accepts()) << good.error;
    int tried = 0;
    auto expectRefused = [&](int stage, const char *what, auto change) {
      Case bad = good;
      change(bad.program.stages[stage]);
      ++tried;
      EXPECT_FALSE(bad.accepts()) << windows << ", " << what;
    };
    for (int s = 0; s < 2; ++s) {
      const Stage &stage = good.program.stages[s];
      for (int a = 0; a < int(stage.actions.size()); ++a) {
        Kind kind = stage.kindOf(a);
        if ((kind != Kind::SumGrad && kind != Kind::Refresh) ||
            stage.templateOf(a).updates.empty())
          continue;
        expectRefused(s, "twice", [&](Stage &x) {
          std::vector<int> &list = ownTemplate(x, a).updates;
          list.push_back(list[0]);
        });
        expectRefused(s, "none", [&](Stage &x) {
          ownTemplate(x, a).updates.push_back(1000);
        });
        expectRefused(s, "of another chunk", [&](Stage &x) {
          std::vector<int> own = x.templateOf(a).updates;
          for (int other = 0; other < int(x.updates.size()); ++other)
            if (std::find(own.begin(), own.end(), other) == own.end())
              ownTemplate(x, a).updates = {other};
        });
        if (kind == Kind::SumGrad)
          expectRefused(s, "round",
                        [&](Stage &x) { ++ownTemplate(x, a).round; });
        for (int b = a + 1; b < int(stage.actions.size()); ++b)
          for (int i = 0; i < stage.actions[b].waitCount; ++i)
            if (stage.waitsOf(b)[i] == a)
              expectRefused(s, "wait", [&](Stage &x) { dropWait(x, b, i); });
      }
    }
    EXPECT_GT(tried, 20);
  }
}

/// Two chunks are never gathered at once: the region holds the larger.
TEST(WindowPlan, ABoundOnChunksIsABoundOnBytes) {
  const char *rows = "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1B0,1REDUCE_GRAD,"
                     "1RESHARD,0UNSHARD,0B0,0REDUCE_GRAD,0RESHARD\n";
  Case one = makeCase({1, 2, 1}, rows, {.windows = true});
  ASSERT_TRUE(one.plan()) << one.error;
  EXPECT_TRUE(one.accepts()) << one.error;
  const ModelLayout &layout = one.layout;
  int64_t weights = layout.embed.block.bytes + layout.kinds[0].block.bytes;
  auto gradients = [](const TaskGroup &first, const TaskGroup &second) {
    return first.block.gradientBytes + second.block.gradientBytes;
  };
  const Region *region = findRegion(one.program.stages[0].regions, "windows");
  ASSERT_TRUE(region);
  // In 0B0 the gradient of chunk 1 is still on its way.
  EXPECT_EQ(region->bytes, weights + gradients(layout.embed, layout.kinds[0]) +
                               gradients(layout.kinds[1], layout.loss));
}

/// The next gradient does not wait for the one that is being reduced, and the
/// one after it takes its bytes.
TEST(WindowPlan, GradientsTakeTurns) {
  const char *rows =
      "0UNSHARD,0F0,0F1,0F2,0B0,0REDUCE_GRAD,0B1,0REDUCE_GRAD,0B2,"
      "0REDUCE_GRAD,0RESHARD\n";
  Case c = makeCase({1, 1, 3}, rows, {.windows = true});
  ASSERT_TRUE(c.plan()) << c.error;
  EXPECT_TRUE(c.accepts()) << c.error;
  const Stage &stage = c.program.stages[0];
  EXPECT_TRUE(stage.waitsOf(6).empty());
  ASSERT_EQ(stage.waitsOf(8).size(), 1u);
  EXPECT_EQ(stage.waitsOf(8)[0], 5);
  EXPECT_EQ(stage.templateOf(8).clears[0].offset,
            stage.templateOf(4).clears[0].offset);
}

TEST(WindowPlan, WithoutFsdpTasksReadStorage) {
  const char *rows = "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n";
  Case c = makeCase({1, 1, 1}, rows, {.zero = true});
  ASSERT_TRUE(c.plan()) << c.error;
  EXPECT_TRUE(c.accepts()) << c.error;
  const Stage &stage = c.program.stages[0];
  EXPECT_FALSE(findRegion(stage.regions, "windows"));
  for (const ActionTemplate &actionTemplate : stage.templates) {
    EXPECT_TRUE(actionTemplate.transfers.empty());
    EXPECT_TRUE(actionTemplate.clears.empty());
  }
}

TEST(WindowPlan, WhatIsMissingIsNamed) {
  for (auto [rows, message] :
       {std::pair{"0F0,0B0,0REDUCE_GRAD\n",
                  "stage 0: chunk 0, microbatch 0, F needs the weights of "
                  "chunk 0, which are divided over ranks: expected UNSHARD"},
        {"0UNSHARD,0F0,0RESHARD,0B0,0REDUCE_GRAD\n",
         "B needs the weights of chunk 0"},
        {"0UNSHARD,0F0,0B0,0RESHARD\n",
         "is the last of a chunk whose gradient is not reduced"},
        {"0UNSHARD,0UNSHARD,0F0,0B0,0REDUCE_GRAD\n",
         "gathers weights that are there: expected RESHARD before"},
        {"0RESHARD,0UNSHARD,0F0,0B0,0REDUCE_GRAD\n",
         "frees weights that no UNSHARD has gathered"},
        {"0UNSHARD,0F0,0OFFLOAD0,0B0,0REDUCE_GRAD\n",
         "needs residuals that are in host memory: expected FETCH before"},
        {"0UNSHARD,0F0,0FETCH0,0B0,0REDUCE_GRAD\n",
         "expected residuals in host memory, after OFFLOAD"},
        {"0UNSHARD,0OFFLOAD0,0F0,0B0,0REDUCE_GRAD\n",
         "expected residuals on the device, between F and B"}}) {
    Case c = makeCase({1, 1, 1}, rows, {.windows = true, .offload = true});
    EXPECT_FALSE(c.plan());
    EXPECT_NE(c.error.find(message), std::string::npos) << c.error;
  }
}

TEST(WindowPlan, TheMeshHasThePipelinesStages) {
  Case c = makeCase({1, 1, 1}, "0F0,0B0\n", {});
  c.layout.program.mesh[1].size = 2;
  EXPECT_FALSE(c.plan());
  EXPECT_EQ(c.error, "expected the mesh's axis 'stage' to have the pipeline's "
                     "1 stages, got 2");
}

/// The gathers and reductions that the compiler adds.
TEST(WindowPlan, GatheredTimelines) {
  std::mt19937 random(2);
  for (pipe::GatherMode mode :
       {pipe::GatherMode::PerIteration, pipe::GatherMode::Once,
        pipe::GatherMode::PerRepeat})
    for (bool unpipelined : {false, true}) {
      pipe::Shape shape{2, 3, 6};
      shape.hasUnpipelined = unpipelined;
      std::string error;
      auto timeline = pipe::makeTimeline("circular", {shape, 1, false}, error);
      ASSERT_TRUE(timeline) << error;
      pipe::GatherRequest request;
      request.mode = mode;
      auto gathered = pipe::gatherWeights(pipe::addCommunication(*timeline),
                                          request, error);
      ASSERT_TRUE(gathered) << error;
      Case c;
      c.timeline = *gathered;
      c.layout = makeLayout({.stages = 2, .windows = true}, random);
      c.chunks = makeChunks(shape, 2);
      ASSERT_TRUE(c.plan()) << c.error;
      EXPECT_TRUE(c.accepts()) << c.error;
    }
}

TEST(UnpipelinedLayers, IsOnEveryStageAndUpdatedOnTheFirst) {
  std::mt19937 random(3);
  pipe::Shape shape{3, 1, 6};
  shape.hasUnpipelined = true;
  Case c;
  ASSERT_TRUE(makeRandomCase("1f1b", shape, {}, 2, random, c));
  EXPECT_TRUE(c.accepts()) << c.error;
  int tied = c.layout.loss.block.entries[0].parameter;
  for (size_t s = 0; s < 3; ++s) {
    const Stage &stage = c.program.stages[s];
    EXPECT_GE(stage.targetData, 0);
    EXPECT_GE(stage.loss, 0);
    for (const Update &update : stage.updates) {
      bool shared = update.layer >= 6 || update.layer < 0;
      // Only what embed alone uses is on one stage.
      bool alone =
          update.layer < 0 &&
          update.parameter == c.layout.embed.block.entries[0].parameter;
      EXPECT_EQ(update.copies.size(), shared && !alone ? 2u : 0u);
      size_t sums = update.layer < 0 && update.parameter == tied ? 4
                    : shared && !alone                           ? 3
                                                                 : 1;
      ASSERT_EQ(update.gradients.size(), sums);
      if (shared)
        EXPECT_EQ(s, 0u);
      for (size_t i = 0; i < sums; ++i)
        EXPECT_EQ(update.gradients[i].stage, int(s + i - (sums == 4 && i > 0)));
    }
  }
  // Stages add up their losses.
  EXPECT_EQ(c.program.lossAxes, std::vector<int>{1});
}

/// The activations hold two residuals, since only the newest stay off the host.
TEST(Offload, ResidualsLeaveTheDevice) {
  const char *stay = "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n";
  const char *rest =
      "0F0,0OFFLOAD0,0F1,0OFFLOAD1,0F2,0OFFLOAD2,0F3,0OFFLOAD3,0FETCH0,0FETCH1,"
      "0B0,0FETCH2,0B1,0FETCH3,0B2,0B3\n";
  Case on = makeCase({1, 1, 4}, stay, {.offload = true});
  Case off = makeCase({1, 1, 4}, rest, {.offload = true});
  ASSERT_TRUE(on.plan() && off.plan()) << on.error << off.error;
  EXPECT_TRUE(off.accepts()) << off.error;
  const Stage &stage = off.program.stages[0];
  int64_t bytes = off.layout.kinds[0].offloadedBytes;
  EXPECT_EQ(stage.hostBytes, 4 * alignUp(bytes));
  EXPECT_EQ(on.program.stages[0].hostBytes, 0);
  EXPECT_LT(stage.arenaBytes, on.program.stages[0].arenaBytes);
  EXPECT_EQ(stage.templateOf(1).transfers[0].bytes, alignUp(bytes));
  // FETCH waits for its OFFLOAD, B for its FETCH.
  ASSERT_EQ(stage.waitsOf(10).size(), 1u);
  EXPECT_EQ(stage.waitsOf(10)[0], 8);
}

TEST(DescribePlan, OneLineAUse) {
  Case c =
      makeCase({1, 1, 1}, "0UNSHARD,0F0,0OFFLOAD0,0FETCH0,0B0,0REDUCE_GRAD\n",
               {.windows = true, .offload = true, .sizes = 2});
  ASSERT_TRUE(c.plan()) << c.error;
  c.program.stages[0].arenaBytes = 5 << 20;
  std::string text = describePlan(c.program);
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    names.push_back(text.substr(at, 19));
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "memory of a rank, i", "stage              ", "parameters         ",
          "compute copies     ", "gradients          ", "optimizer          ",
          "constants          ", "data               ", "scratch            ",
          "windows            ", "activations        ", "peak               ",
          "offloaded (host)   "}));
  EXPECT_NE(text.find("peak                        5.0\n"), std::string::npos)
      << text;
}

TEST(DescribePlan, ColumnsStandUnderTheirStages) {
  for (int stages : {1, 8}) {
    Program program;
    program.stages.resize(stages);
    for (Stage &stage : program.stages) {
      stage.regions.push_back({"parameters", 0, 12345 << 20});
      stage.arenaBytes = 12345 << 20;
    }
    std::istringstream lines(describePlan(program));
    std::string title, heading, line;
    std::getline(lines, title);
    std::getline(lines, heading);
    while (std::getline(lines, line)) {
      ASSERT_EQ(line.size(), heading.size()) << line;
      // Every number ends where the number of its stage does.
      for (size_t at = 19; at < line.size(); ++at) {
        bool ends = at + 1 == line.size() || line[at + 1] == ' ';
        EXPECT_EQ(line[at] != ' ' && ends, heading[at] != ' ') << line;
      }
    }
  }
}

} // namespace
