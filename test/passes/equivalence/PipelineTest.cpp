// SPDX-License-Identifier: Apache-2.0
//
// Pipelines give the results of the sequential run, bit for bit: each case of
// stages, layers, repeats and microbatches, under every schedule that can do
// it, with the timeline run action by action on ranks that only exchange
// messages.
#include "test/interpreter/PipelineRun.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/TestModels.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::rota::Model;

namespace {

struct Case {
  const char *name;
  int stages, layers, repeats, microbatches;
  const char *split = ""; // options that say the layers of chunks
};

constexpr Case cases[] = {
    {"one_rank", 1, 4, 1, 3},
    {"one_rank_of_two_chunks", 1, 4, 2, 3},
    {"not_circular", 4, 4, 1, 4},
    {"minimum_microbatches", 4, 8, 2, 4},
    {"extra_microbatches", 4, 8, 2, 8},
    {"not_square", 3, 6, 2, 6},
    {"deep", 4, 32, 4, 8},
    {"deep_not_circular", 4, 32, 1, 8},
    {"long_repeat_chain", 2, 32, 16, 4},
    {"both_ends_alone", 4, 4, 1, 4, " layers-per-stage=0,3,1,0"},
    {"both_ends_alone_of_two_chunks", 4, 6, 2, 8},
    {"embedding_alone", 2, 4, 2, 4, " layers-per-stage=0,2,1,1"},
    {"loss_alone_beside_layers", 1, 4, 2, 3, " layers-per-stage=4,0"},
};

struct Schedule {
  const char *name, *options;
  const char *completion = ""; // options of complete-timeline
  bool isOffloaded = false;    // the layers' inputs wait on the host
  bool fits(const Case &test) const {
    llvm::StringRef text(options);
    if (text.contains("delay=2") && test.microbatches < 2 * test.stages)
      return false;
    if ((text.contains("schedule=1f1b") || text.contains("schedule=zb1p")) &&
        test.repeats > 1)
      return false;
    if (text.contains("placement=v") && test.repeats != 2)
      return false;
    if (text.contains("dualpipev") && test.microbatches < 2 * test.stages)
      return false;
    return test.repeats > 1 ||
           !(text.contains("interleaved") ||
             llvm::StringRef(completion).contains("per-repeat"));
  }
};

constexpr Schedule schedules[] = {
    {"gpipe", "schedule=gpipe"},
    {"gpipe_split", "schedule=gpipe split-backward"},
    {"circular", "schedule=circular"},
    {"circular_delayed", "schedule=circular delay=2"},
    {"circular_split", "schedule=circular split-backward"},
    {"circular_gathered_per_repeat", "schedule=circular", "mode=per-repeat",
     true},
    {"circular_gathered_once", "schedule=circular", "mode=once"},
    {"gpipe_gathered_per_iteration", "schedule=gpipe split-backward",
     "mode=per-iteration", true},
    {"one_f_one_b", "schedule=1f1b"},
    {"one_f_one_b_split", "schedule=1f1b split-backward"},
    {"interleaved", "schedule=interleaved-1f1b"},
    {"interleaved_split", "schedule=interleaved-1f1b split-backward"},
    {"zb1p", "schedule=zb1p"},
    {"zbv", "schedule=zbv placement=v"},
    {"v_min", "schedule=v-min placement=v"},
    {"dualpipev_gathered_per_repeat", "schedule=dualpipev placement=v",
     "mode=per-repeat", true},
};

/// A model of `test.layers` layers, differentiated, with its data.
struct Problem {
  Problem(const TestModel &model, const Case &test, bool isOffloaded = false,
          llvm::StringRef scheduling = "")
      : module(withElements(model.text, "f64")) {
    for (auto stack : module.get().getOps<mlir::rota::StackOp>())
      stack.setLayers(test.layers);
    std::string passes = scheduling.str();
    passes += isOffloaded
                  ? "differentiate{remat=minimal,decoder_layer_input=offload}"
                  : "differentiate{remat=minimal}";
    isReady = succeeded(runPasses(module, passes));
    view = Model::get(module.get());
    if (failed(view))
      return;
    parameters = randomParameters(*view, 1);
    microbatches =
        randomMicrobatches(*view, model.vocabulary, test.microbatches, 2);
  }

  llvm::FailureOr<Step> run(llvm::StringRef completion) {
    if (!isReady ||
        failed(
            runPasses(module, ("complete-timeline{" + completion + "}").str())))
      return llvm::failure();
    for (auto program : module.get().getOps<mlir::pipe::ProgramOp>())
      return runPipeline(program, *view, parameters, microbatches);
    return llvm::failure();
  }

  TestModule module;
  llvm::FailureOr<Model> view;
  Tensors parameters;
  llvm::SmallVector<Microbatch> microbatches;
  bool isReady = false;
};

/// The pipeline that makes the timeline of `schedule`.
std::string schedulingOf(const Case &test, const Schedule &schedule,
                         const std::string &more = "") {
  return "schedule-layers{stages=" + std::to_string(test.stages) +
         " repeats=" + std::to_string(test.repeats) +
         " microbatches=" + std::to_string(test.microbatches) + test.split +
         more + " " + schedule.options + "},";
}

class Pipeline : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(Pipeline, GivesTheBitsOfTheSequentialRun) {
  const TestModel &model = testModels()[std::get<0>(GetParam())];
  const Case &test = cases[std::get<1>(GetParam())];
  Problem sequential(model, test);
  ASSERT_TRUE(sequential.isReady) << sequential.module.takeDiagnostics();
  auto expected = differentiate(*sequential.view, sequential.parameters,
                                sequential.microbatches);
  ASSERT_TRUE(succeeded(expected)) << sequential.module.takeDiagnostics();
  unsigned count = 0;
  for (const Schedule &schedule : schedules) {
    if (!schedule.fits(test))
      continue;
    ++count;
    Problem problem(model, test, schedule.isOffloaded,
                    schedulingOf(test, schedule));
    auto step = problem.run(schedule.completion);
    ASSERT_TRUE(succeeded(step))
        << schedule.name << ": " << problem.module.takeDiagnostics();
    EXPECT_TRUE(isSameStep(*step, *expected)) << schedule.name;
  }
  EXPECT_GE(count, 6u);
}

INSTANTIATE_TEST_SUITE_P(
    Replay, Pipeline,
    testing::Combine(testing::Range(size_t(0), testModels().size()),
                     testing::Range(size_t(0), std::size(cases))),
    [](const auto &info) {
      return std::string(testModels()[std::get<0>(info.param)].name) + "_" +
             cases[std::get<1>(info.param)].name;
    });

/// Layers outside of the pipeline: each stage sums the gradients of its own
/// microbatches, so the order of sums is another than the sequential run's.
class UnpipelinedLayers : public testing::TestWithParam<size_t> {};

TEST_P(UnpipelinedLayers, GiveWhatTheSequentialRunGives) {
  const TestModel &model = testModels()[GetParam()];
  struct {
    Case test;
    int pipelined;
  } const subsets[] = {
      {{"subset", 4, 16, 2, 8}, 8},
      {{"one_left_out", 3, 4, 1, 6}, 3},
      {{"square", 2, 6, 2, 2}, 4},
      {{"embedding_alone", 3, 4, 1, 6, " layers-per-stage=0,2,1"}, 3}};
  for (const auto &[test, pipelined] : subsets) {
    Problem sequential(model, test);
    ASSERT_TRUE(sequential.isReady) << sequential.module.takeDiagnostics();
    auto expected = differentiate(*sequential.view, sequential.parameters,
                                  sequential.microbatches);
    ASSERT_TRUE(succeeded(expected)) << sequential.module.takeDiagnostics();
    for (const Schedule &schedule : schedules) {
      if (!schedule.fits(test))
        continue;
      Problem problem(
          model, test, schedule.isOffloaded,
          schedulingOf(test, schedule,
                       " pipeline-layers=" + std::to_string(pipelined)));
      auto step = problem.run(schedule.completion);
      ASSERT_TRUE(succeeded(step)) << test.name << " " << schedule.name << ": "
                                   << problem.module.takeDiagnostics();
      EXPECT_LT(stepError(*step, *expected), 1e-10)
          << test.name << " " << schedule.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Replay, UnpipelinedLayers,
                         testing::Range(size_t(0), testModels().size()));

/// The run itself must see a timeline that is wrong.
class WrongTimeline
    : public testing::TestWithParam<std::pair<const char *, const char *>> {};

TEST_P(WrongTimeline, IsAnError) {
  auto [rows, message] = GetParam();
  TestModule module(withElements(testModels()[0].text, "f64") + R"(
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
      pipe.chunks [<rank 0 embed layers [@linear 0]>, <rank 1 layers [@linear 1, @linear 2] loss>]
      pipe.timeline "by hand" delay = 1 rows [)" +
                    rows + "]\n}\n");
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  ASSERT_TRUE(succeeded(runPasses(module, "differentiate")));
  auto model = Model::get(module.get());
  ASSERT_TRUE(succeeded(model));
  auto program = *module.get().getOps<mlir::pipe::ProgramOp>().begin();
  Tensors parameters = randomParameters(*model, 1);
  auto microbatches = randomMicrobatches(*model, 0, 2, 2);
  auto step = runPipeline(program, *model, parameters, microbatches);
  EXPECT_EQ(succeeded(step), llvm::StringRef(message).empty());
  EXPECT_EQ(module.takeDiagnostics(), message);
}

INSTANTIATE_TEST_SUITE_P(
    Checker, WrongTimeline,
    testing::Values(
        std::pair{R"("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
                     "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1")",
                  ""},
        std::pair{
            R"("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1",
                     "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1")",
            "rank 1, position 0, 1RECV_F0: the message of chunk 0, microbatch "
            "1, meets the place of chunk 1, microbatch 0"},
        std::pair{R"("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
                     "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B0,1SEND_B1")",
                  "rank 1, position 6, 1B0: no result of forward here"},
        std::pair{R"("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0B1",
                     "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1")",
                  "rank 0, position 6, 0B1: deadlock"},
        std::pair{
            R"("0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
                     "1UNSHARD,1RECV_F0,1F0,1RESHARD,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1")",
            "rank 1, position 5, 1F1: the chunk's weights are not gathered"},
        std::pair{
            R"("0F0,0SEND_F0,0OFFLOAD0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
                     "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1")",
            "rank 0, position 6, 0B0: no result of forward here"},
        std::pair{R"("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0",
                     "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1")",
                  "rank 0, position 6, the end: values are left that nothing "
                  "has read"}));

} // namespace
