// SPDX-License-Identifier: Apache-2.0
//
// Steps without a barrier at their end: the same bits as with one, and
// nobody waits.
#include "runtime/data/Batches.h"
#include "runtime/train/Data.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/step/Bubble.h"
#include "runtime/train/step/StepRunner.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/TrainerRun.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>

using namespace rota;
using namespace rota::test;
using nlohmann::json;

namespace {

/// No gradient is clipped by this limit, which all ranks wait to compare with.
constexpr const char *kHuge = "1e30", *kNone = "0";

std::vector<std::string> arguments(const std::string &clip,
                                   std::vector<std::string> more) {
  more.insert(more.end(), {"--gradient-clip", clip, "--json", "--log-interval",
                           "1", "--learning-rate", "0.05"});
  return more;
}

/// The numbers of a step's lines without its times.
std::vector<json> numbersOf(const Outcome &outcome) {
  std::vector<json> numbers;
  for (const json &line : outcome.events("step"))
    numbers.push_back({line["step"], line["loss"], line["validation_loss"],
                       line["learning_rate"], line["gradient_norm"]});
  return numbers;
}

std::vector<LineShape> shapes() {
  return {{1, 2, 2},
          {2},
          {2, 3, 2},
          {1, 2, 1, 2},
          {2, 2, 1, 2},
          {1, 2, 2, 1, true},
          {2, 2, 2, 2, true},
          {2, 2, 2, 1, true, false, 2},
          {2, 2, 1, 1, false, false, 1, false, 3},
          {2, 2, 2, 1, true, false, 1, false, 2}};
}

/// Runs `shape` with the gradient norm limit `clip`, with and without
/// --post-validate, and compares lines and saved weights. Returns the number of
/// the 12 steps that were rolled back.
int64_t comparePostValidated(const LineShape &shape, const std::string &clip) {
  TemporaryFolder folder;
  std::vector<json> numbers[2];
  int64_t above = 0, rolledBack = 0;
  for (bool validates : {false, true}) {
    std::vector<std::string> all = {
        "--steps", "12",     "--eval-interval",
        "5",       "--save", folder.path(validates ? "speculative" : "wait")};
    if (validates)
      all.push_back("--post-validate");
    Outcome o = runWith(makeLine(shape), arguments(clip, all));
    EXPECT_EQ(o.code, kExitSuccess) << o.err;
    numbers[validates] = numbersOf(o);
    rolledBack = o.events("end").at(0)["rolled_back_steps"];
    if (validates)
      break;
    EXPECT_EQ(rolledBack, 0);
    for (const json &line : o.events("step"))
      above += line["gradient_norm"].get<double>() + 1e-6 > std::stod(clip);
  }
  EXPECT_EQ(numbers[0].size(), 12u);
  EXPECT_EQ(numbers[0], numbers[1]);
  EXPECT_EQ(folder.read("speculative"), folder.read("wait"));
  EXPECT_EQ(rolledBack, above);
  return rolledBack;
}

/// The progress of each stage; one thread waits for another.
class Progress {
public:
  void reach(int64_t step) {
    std::lock_guard lock(mutex);
    reached = step;
    changed.notify_all();
  }
  /// False: the step did not begin in a time in which any step does.
  bool waitFor(int64_t step) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60),
                            [&] { return reached >= step; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  int64_t reached = 0;
};

Progress lastStage;           // the steps that it has begun
std::atomic<int64_t> present; // the step of the first stage

/// The first stage's update does not begin before the last stage is in its next
/// step.
void lateSquares(RotaContext *context, const RotaFrame *frame) {
  auto *self = rankOf(context);
  if (self->stageNumber() == 0 && !lastStage.waitFor(present + 1))
    return reportFailure(context, "the last stage waits for this one");
  lineTasks[5](context, frame);
}

} // namespace

TEST(StepBarrier, ChangesNoBit) {
  for (const LineShape &shape : shapes()) {
    SCOPED_TRACE(fmt::format(
        "stages {}, data {}, fsdp {}, accumulation steps {}", shape.stages,
        shape.data, shape.fsdp, shape.accumulationSteps));
    TemporaryFolder folder;
    std::vector<json> numbers[2];
    for (bool barrier : {false, true}) {
      std::string name = barrier ? "barrier" : "none";
      Outcome o = runWith(makeLine(shape),
                          arguments(barrier ? kHuge : kNone,
                                    {"--steps", "12", "--eval-interval", "5",
                                     "--save", folder.path(name)}));
      ASSERT_EQ(o.code, kExitSuccess) << o.err;
      numbers[barrier] = numbersOf(o);
    }
    EXPECT_EQ(numbers[0].size(), 12u);
    EXPECT_EQ(numbers[0], numbers[1]);
    EXPECT_EQ(folder.read("none"), folder.read("barrier"));
  }
}

TEST(StepBarrier, PostValidationChangesNoBit) {
  for (const LineShape &shape : shapes()) {
    SCOPED_TRACE(fmt::format(
        "stages {}, data {}, fsdp {}, accumulation steps {}", shape.stages,
        shape.data, shape.fsdp, shape.accumulationSteps));
    std::vector<double> norms;
    for (const json &line :
         runWith(makeLine(shape), arguments(kHuge, {"--steps", "12"}))
             .events("step"))
      norms.push_back(line["gradient_norm"]);
    ASSERT_EQ(norms.size(), 12u);
    std::ranges::sort(norms);
    auto compare = [&](double clip) {
      return comparePostValidated(shape, std::to_string(clip));
    };
    EXPECT_EQ(compare(2 * norms[11]), 0);
    int64_t some = compare(norms[6]);
    EXPECT_GT(some, 0);
    EXPECT_LT(some, 12);
    EXPECT_EQ(compare(norms[0] / 10), 12);
  }
}

TEST(StepBarrier, PostValidationNeedsClippingAndSkipsNothing) {
  for (const std::vector<std::string> &wrong :
       {std::vector<std::string>{"--gradient-clip", "0"},
        {"--skip-nonfinite"},
        {"--skip-spikes", "6"}}) {
    std::vector<std::string> all = wrong;
    all.push_back("--post-validate");
    Outcome o = run(all);
    EXPECT_EQ(o.code, kExitBadInput);
    EXPECT_NE(o.err.find("'post-validate': "), std::string::npos) << o.err;
  }
}

TEST(StepBarrier, ResumesInTheMiddle) {
  Program program = makeLine({2, 2, 2, 1, true});
  // Without clipping, and with a limit that every step is above.
  for (const std::vector<std::string> &how :
       {std::vector<std::string>{kNone}, {"0.01", "--post-validate"}}) {
    TemporaryFolder folder;
    auto go = [&](const std::string &clip, std::vector<std::string> more) {
      more.insert(more.end(), {"--steps", "12"});
      return runWith(program, arguments(clip, more));
    };
    auto free = [&](std::vector<std::string> more) {
      more.insert(more.end(), how.begin() + 1, how.end());
      return go(how[0], more);
    };
    Outcome whole =
        go(how[0] == kNone ? kHuge : how[0], {"--save", folder.path("whole")});
    std::string checkpoints = folder.path("checkpoints");
    Outcome first = free({"--checkpoint-dir", checkpoints,
                          "--checkpoint-interval", "2", "--stop-after", "7"});
    ASSERT_EQ(first.code, kExitSuccess) << first.err;
    EXPECT_EQ(first.events("end").at(0)["steps"], 7);
    Outcome rest =
        free({"--checkpoint-dir", checkpoints, "--save", folder.path("rest")});
    ASSERT_EQ(rest.code, kExitSuccess) << rest.err;
    std::vector<json> numbers = numbersOf(first), more = numbersOf(rest);
    numbers.insert(numbers.end(), more.begin(), more.end());
    EXPECT_EQ(numbers.size(), 12u);
    // The last step of a process validates.
    std::vector<json> expected = numbersOf(whole);
    numbers[6][2] = expected[6][2];
    EXPECT_EQ(numbers, expected);
    EXPECT_EQ(folder.read("rest"), folder.read("whole"));
  }
}

/// Losses are read a step late; what they would have ended is not saved.
TEST(StepBarrier, ALossThatIsNotFiniteSavesNothing) {
  TemporaryFolder folder;
  Outcome o =
      run(arguments(kNone, {"--steps", "50", "--learning-rate-schedule",
                            "constant", "--checkpoint-dir", folder.path("c"),
                            "--checkpoint-interval", "1", "--save",
                            folder.path("weights"), "--weight-decay", "1e20"}));
  EXPECT_EQ(o.code, kExitRunFailed);
  EXPECT_NE(o.err.find("not finite"), std::string::npos) << o.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("weights")));
  // Every line is that of a step with finite numbers.
  for (const json &line : o.events("step")) {
    EXPECT_TRUE(line["loss"].is_number());
    EXPECT_TRUE(line["gradient_norm"].is_number());
  }
}

/// The first stage cannot end a step before the last one has begun the next, so
/// the run ends only if the last stage does not wait for it.
TEST(StepBarrier, TheLastStageBeginsItsNextStepFirst) {
  constexpr int64_t kSteps = 4;
  Program program = makeLine(2, 3);
  RotaTask tasks[] = {lineTasks[0], lineTasks[1], lineTasks[2],
                      lineTasks[3], lineTasks[4], lateSquares};
  std::vector<std::vector<float>> weights[2];
  for (bool barrier : {false, true}) {
    lastStage.reach(0);
    LocalRanks ranks({&program, barrier ? lineTasks : tasks, lineKernels}, 2);
    Options options;
    options.optimizer.gradientClip = 0.0;
    ranks.run([&](Rank &rank) {
      initialize(rank, 3, nullptr);
      NormalBatches batches(program, 3);
      PhaseTimes phases;
      Executor executor(rank, 0);
      Optimizer optimizer(rank, options.optimizer, {}, barrier);
      StepRunner runner(rank, executor, optimizer, options, phases);
      RunEnd end(rank, options, barrier ? Asking::Waits : Asking::Later);
      BubbleGather bubble(rank);
      end.begin(0);
      for (int64_t t = 1; t <= kSteps; ++t) {
        (rank.stageNumber() == 0) ? present.store(t) : lastStage.reach(t);
        optimizer.begin(0.05);
        runner.run(false, [&](int64_t) {
          loadAccumulationStep(rank, batches, Split::Train,
                               (t - 1) * program.timelineSequences());
        });
        if (bubble.isOpen())
          bubble.finish();
        bubble.start(executor.times().meanSeconds());
        EXPECT_FALSE(end.decide(t, false, false).isLast);
        std::vector<double> result(kStepResults);
        if (t > 1)
          optimizer.finishNorm(result);
      }
      if (rank.stageNumber() == 1)
        lastStage.reach(kSteps + 1);
      optimizer.finish();
      end.settle();
      bubble.finish();
    });
    weights[barrier] = readMasters(ranks);
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(StepBarrier, WhatOneRankAsksForIsDecidedAfterTheNextStep) {
  Program program = makeLine(2, 2);
  LocalRanks ranks(makeLineExecutable(program), 2);
  Options options;
  options.steps = 6;
  std::vector<std::string> saves(static_cast<size_t>(ranks.count()));
  ranks.run([&](Rank &rank) {
    RunEnd end(rank, options, Asking::Later);
    end.begin(0);
    std::string &own = saves[static_cast<size_t>(rank.number())];
    for (int64_t t = 1; t <= 6; ++t) {
      // Rank 1 asks after steps 2 and 3: the checkpoint of step 3 is for both.
      bool asks = rank.number() == 1 && (t == 2 || t == 3);
      StepEnd ends = end.decide(t, /*isDue=*/t == 5, asks);
      own += ends.saves ? 's' : '-';
      own += ends.isLast ? '.' : ' ';
    }
  });
  for (const std::string &own : saves)
    EXPECT_EQ(own, "- - s - s -.");
}
