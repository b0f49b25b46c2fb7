// SPDX-License-Identifier: Apache-2.0
//
// The trainer's command line from arguments to exit code, on the model of
// LineModel.h.
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/TrainerRun.h"

#include <cstring>
#include <filesystem>

using namespace rota;
using namespace rota::test;
using nlohmann::json;

TEST(Trainer, LearnsAndReportsJson) {
  Outcome o = run({"--steps", "40", "--json", "--learning-rate", "0.1",
                   "--eval-interval", "20", "--weight-decay", "0"});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  std::vector<json> steps = o.events("step");
  ASSERT_EQ(steps.size(), 5u); // 1, 10, 20, 30, 40
  EXPECT_EQ(steps.back()["step"], 40);
  // Targets are noise of variance 1 that no weight predicts: w and b go to 0.
  EXPECT_LT(steps.back()["validation_loss"],
            0.8 * steps[0]["loss"].get<double>());
  for (int i : {0, 1, 3}) // steps 1, 10, 30
    EXPECT_TRUE(steps[i]["validation_loss"].is_null()) << i;
  EXPECT_TRUE(steps[2]["validation_loss"].is_number());
  EXPECT_EQ(o.events("end").size(), 1u);
  EXPECT_EQ(o.events("end")[0]["ranks"].size(), 2u);
}

TEST(Trainer, TextIsAlignedAndPlainWithoutATerminal) {
  Outcome o = run({"--steps", "3", "--log-interval", "1"});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  EXPECT_EQ(o.out.find('\033'), std::string::npos);
  EXPECT_NE(o.out.find("line: 12 parameters, schedule by hand, 2 ranks"),
            std::string::npos)
      << o.out;
  size_t header = o.out.find("           step      loss validation");
  ASSERT_NE(header, std::string::npos) << o.out;
  std::stringstream lines(o.out.substr(header));
  std::string first, second;
  std::getline(lines, first);
  for (int i = 0; i < 3; ++i) {
    std::getline(lines, second);
    EXPECT_EQ(first.size(), second.size()) << second;
  }
  EXPECT_NE(second.find("3/3"), std::string::npos);
}

TEST(Trainer, NeedsTheMemoryOfItsPlan) {
  Program program = makeLine(1, 2);
  program.stages[0].arenaBytes = int64_t(1) << 45;
  Outcome o = runWith(program, {"--steps", "1"});
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_TRUE(o.err.starts_with("error: cpu: expected 35184372088832 bytes of "
                                "memory, as `rota plan` says, got "))
      << o.err;
}

TEST(Trainer, LossCurvesAreEqualOnOneAndTwoRanks) {
  std::vector<std::string> arguments = {"--steps", "5", "--json",
                                        "--log-interval", "1"};
  std::vector<json> one = runWith(makeLine(1, 2), arguments).events("step");
  std::vector<json> two = runWith(makeLine(2, 2), arguments).events("step");
  ASSERT_EQ(one.size(), 5u);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(one[i]["loss"], two[i]["loss"]);
}

TEST(Trainer, SavedWeightsAreReadBack) {
  TemporaryFolder folder;
  std::string file = folder.path("w.safetensors");
  ASSERT_EQ(run({"--steps", "2", "--save", file}).code, kExitSuccess);
  EXPECT_EQ(folder.count(), 1);
  // No learning: the weights that are read are the weights that are saved.
  std::string again = folder.path("again.safetensors");
  Outcome o = run({"--steps", "1", "--weights", file, "--learning-rate", "0",
                   "--save", again});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  EXPECT_EQ(folder.read("w.safetensors"), folder.read("again.safetensors"));
}

TEST(Trainer, SavesTheSameWeightsHoweverTheyAreSpread) {
  TemporaryFolder folder;
  for (const std::vector<LineShape> &same : std::vector<std::vector<LineShape>>{
           {{1, 2, 2}, {2, 2, 2}, {1, 2, 2, 1, true}, {2, 2, 2, 1, true}},
           {{1, 2, 1, 2}, {2, 2, 1, 2}, {1, 2, 1, 2, false, true}},
           {{1, 2, 2, 3}, {2, 2, 2, 3}, {2, 2, 2, 3, true}}}) {
    std::string expected;
    for (const LineShape &shape : same) {
      Outcome o = runWith(makeLine(shape), {"--steps", "3", "--save",
                                            folder.path("w.safetensors")});
      ASSERT_EQ(o.code, kExitSuccess) << o.err;
      std::string saved = folder.read("w.safetensors");
      if (expected.empty())
        expected = saved;
      EXPECT_EQ(saved, expected);
    }
  }
}

TEST(Trainer, ReportsMeshRanksAndHiddenTransfers) {
  Program program = makeLine({2, 2, 1, 2});
  Outcome o = runWith(program, {"--steps", "2", "--profile"});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  for (const char *part :
       {"schedule by hand, 4 ranks (stage=2,fsdp=2), 2 microbatches",
        "hidden under computing: ", "UNSHARD (", "REDUCE_GRAD ("})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << o.out;
  o = runWith(program, {"--steps", "2", "--json", "--profile"});
  json begin = o.events("begin").at(0), end = o.events("end").at(0);
  EXPECT_EQ(begin["ranks"], 4);
  EXPECT_EQ(begin["mesh"],
            (json{{"data", 1}, {"stage", 2}, {"fsdp", 2}, {"tensor", 1}}));
  EXPECT_EQ(end["ranks"].size(), 4u);
  // 2 steps, 4 ranks, forward and backward of 2 microbatches, 2 tensors.
  EXPECT_EQ(end["unshard"]["count"], 2 * 4 * 4 * 2);
  EXPECT_EQ(end["reduce_grad"]["count"], 2 * 4 * 2);
  EXPECT_LE(end["unshard"]["hidden"], 1.0);
  // The plain pipeline has none.
  end = run({"--steps", "1", "--json"}).events("end").at(0);
  EXPECT_TRUE(end["unshard"]["hidden"].is_null());
}

TEST(Trainer, RanksAreThreadsUnlessSomebodyStartsProcesses) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  Outcome alone = run({"--steps", "1"});
  Program wide = makeLine({2, 2, 2});
  Outcome few = runWith(wide, {"--steps", "1", "--ranks", "mpi"});
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  Outcome silent = run({"--steps", "1"});
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(alone.code, kExitBadInput);
  EXPECT_EQ(alone.err,
            "error: mpirun started 2 processes, and with --ranks threads each "
            "would train alone: expected --ranks mpi or nccl, or 1 process\n");
  EXPECT_EQ(few.code, kExitBadInput);
  EXPECT_EQ(few.err, "error: expected 4 processes, one for each rank of the "
                     "mesh data=2,stage=2, got 2\n");
  EXPECT_EQ(silent.code, kExitBadInput);
  EXPECT_EQ(silent.err, "");
  Outcome none = run({"--steps", "1", "--ranks", "mpi"});
  EXPECT_EQ(none.err,
            "error: expected 2 processes, one for each rank of the mesh "
            "stage=2, got 1 (neither torchrun nor mpirun nor srun started this "
            "one)\n");
}

TEST(Trainer, NcclNeedsGpus) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  Outcome o = run({"--steps", "1", "--ranks", "nccl"});
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_EQ(o.err,
            "error: --ranks nccl: expected a program for cuda, got one for "
            "cpu\n");
}

TEST(Trainer, UnknownArgumentsNameTheNearest) {
  Outcome o = run({"--step", "3"});
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_EQ(o.err, "error: unknown argument '--step'; did you mean "
                   "'--steps'?\n");
  EXPECT_EQ(run({"--learning_rate=1"}).err,
            "error: unknown argument '--learning_rate'; did you mean "
            "'--learning-rate'?\n");
  EXPECT_EQ(run({"--zebra"}).err, "error: unknown argument '--zebra'\n");
}

TEST(Trainer, BadValuesAreBadInput) {
  for (std::vector<std::string> bad : std::vector<std::vector<std::string>>{
           {"--steps", "0"},
           {"--steps", "many"},
           {"--beta1", "1"},
           {"--learning-rate", "-1"},
           {"--token-type", "uint8"},
           {"--data", "file"}, // this model takes none
           {"--weights", "/nonexistent/x.safetensors"},
           {"--save", "/nonexistent/x.safetensors"},
           {"--min-learning-rate", "1", "--learning-rate", "0.5"},
           {"--eval-data", "file"}, // nor this one
           {"--target-loss", "-1"},
           {"--skip-spikes", "-1"},
           {"--skip-spikes", "many"},
           {"--skip-spikes", "nan"},
           {"--eval-batch-size", "3"}, // not of whole steps
           {"probe", "--write", "everything"}}) {
    Outcome o = run(bad);
    EXPECT_EQ(o.code, kExitBadInput) << bad[0] << " " << bad[1];
    EXPECT_NE(o.err.find("error: "), std::string::npos);
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  }
}

TEST(Trainer, TokensNeedData) {
  Outcome o = runWith(tokenProgram(), {"--steps", "1"});
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_EQ(o.err, "error: expected --data with at least one file\n");
}

TEST(Trainer, HelpTellsTheExitCodes) {
  Outcome o = run({"--help"});
  EXPECT_EQ(o.code, kExitSuccess);
  EXPECT_NE(o.out.find("--learning-rate"), std::string::npos);
  EXPECT_NE(o.out.find("Exit codes"), std::string::npos);
}

TEST(Trainer, ABrokenProgramIsARunThatFailed) {
  Program program = makeLine(2, 2);
  program.stages[0].actions.pop_back();
  program.stages[0].templates[1].bytes = 4;
  Outcome o = runWith(program, {});
  EXPECT_EQ(o.code, kExitRunFailed);
  EXPECT_NE(o.err.find("the compiled program is broken: stage"),
            std::string::npos)
      << o.err;
}

TEST(Trainer, AnInfiniteLossEndsTheRun) {
  Outcome o =
      run({"--steps", "50", "--learning-rate", "1e30", "--gradient-clip", "0"});
  EXPECT_EQ(o.code, kExitRunFailed);
  EXPECT_NE(o.err.find("not finite"), std::string::npos) << o.err;
}

TEST(Trainer, TimeLimitStopsWithAFinalValidation) {
  Outcome o = run({"--steps", "100000000", "--time-limit", "0.2", "--json"});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  json end = o.events("end").at(0);
  EXPECT_LT(end["steps"], 100000000);
  EXPECT_TRUE(end["validation_loss"].is_number());
  EXPECT_EQ(end["early_end"], "time-limit");
}

/// The last line of a run with steps left says how it goes on.
TEST(Trainer, SaysHowARunGoesOn) {
  TemporaryFolder folder;
  auto lastLine = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", "100000000", "--time-limit", "0.05"});
    Outcome o = run(more);
    EXPECT_EQ(o.code, kExitSuccess) << o.err;
    size_t begin = o.out.rfind("at its time limit after step ");
    EXPECT_LT(begin, o.out.size()) << o.out;
    return o.out.substr(o.out.find(" of ", begin));
  };
  EXPECT_EQ(lastLine({}), " of 100000000; without 'checkpoint-dir' there is no "
                          "checkpoint to go on from\n");
  EXPECT_EQ(lastLine({"--checkpoint-dir", folder.path("c")}),
            " of 100000000; the same command goes on\n");
  EXPECT_EQ(
      lastLine({"--checkpoint-dir", folder.path("c"), "--resume", "never"}),
      " of 100000000; with 'resume' set to 'auto' the same command goes on\n");
}

/// Accumulation steps are microbatches that share the memory of a timeline.
TEST(Trainer, AccumulationStepsAreOneBatch) {
  std::vector<std::string> arguments = {"--steps", "6", "--json",
                                        "--log-interval", "1"};
  for (LineShape shape :
       {LineShape{1}, {2}, {1, 2, 2}, {2, 2, 1, 2}, {2, 2, 2, 2, true}}) {
    shape.microbatches = 6;
    Outcome whole = runWith(makeLine(shape), arguments);
    shape.microbatches = 2;
    shape.accumulationSteps = 3;
    Outcome accumulated = runWith(makeLine(shape), arguments);
    ASSERT_EQ(accumulated.code, kExitSuccess) << accumulated.err;
    std::vector<json> a = whole.events("step"), b = accumulated.events("step");
    ASSERT_EQ(a.size(), 6u);
    ASSERT_EQ(b.size(), 6u);
    // Sums over ranks are then made by accumulation step.
    double tolerance = shape.data * shape.fsdp > 1 ? 1e-6 : 0.0;
    for (size_t i = 0; i < a.size(); ++i)
      for (const char *key : {"loss", "gradient_norm"})
        EXPECT_NEAR(a[i][key], b[i][key], tolerance) << key << " of " << i;
    EXPECT_NEAR(a[5]["validation_loss"], b[5]["validation_loss"], 1e-6);
    EXPECT_EQ(accumulated.events("begin").at(0)["accumulation_steps"], 3);
    EXPECT_EQ(accumulated.events("end").at(0)["tokens"],
              whole.events("end").at(0)["tokens"]);
  }
}

/// A checkpoint counts the sequences of all accumulation steps, and their
/// number may change.
TEST(Trainer, ResumesWithAccumulation) {
  TemporaryFolder folder;
  LineShape shape;
  shape.microbatches = 4;
  std::vector<std::string> arguments = {"--steps", "6", "--json",
                                        "--log-interval", "1"};
  std::vector<json> whole = runWith(makeLine(shape), arguments).events("step");
  arguments.insert(arguments.end(),
                   {"--checkpoint-dir", folder.path("c"), "--stop-after", "3"});
  ASSERT_EQ(runWith(makeLine(shape), arguments).code, kExitSuccess);
  shape.microbatches = 2;
  shape.accumulationSteps = 2;
  arguments.back() = "6";
  Outcome o = runWith(makeLine(shape), arguments);
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  std::vector<json> rest = o.events("step");
  ASSERT_EQ(rest.size(), 3u);
  for (size_t i = 0; i < rest.size(); ++i)
    EXPECT_NEAR(rest[i]["loss"], whole[3 + i]["loss"], 1e-6);
}

const std::vector<std::string> kFallingLoss = {"--steps", "40",
                                               "--json",  "--learning-rate",
                                               "0.1",     "--weight-decay",
                                               "0",       "--eval-interval",
                                               "5",       "--log-interval",
                                               "100"};

TEST(Trainer, EndsAtItsTargetLoss) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = kFallingLoss;
  json whole = run(arguments).events("end").at(0);
  EXPECT_EQ(whole["steps"], 40);
  EXPECT_FALSE(whole["reached_target"]);
  double last = whole["validation_loss"];
  EXPECT_LE(whole["best_validation_loss"], last);
  std::string path = folder.path("checkpoints");
  arguments.insert(
      arguments.end(),
      {"--target-loss", std::to_string(last * 1.2), "--checkpoint-dir", path});
  Outcome o = run(arguments);
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  json end = o.events("end").at(0);
  int64_t steps = end["steps"];
  EXPECT_LT(steps, 40);
  EXPECT_EQ(steps % 5, 0);
  EXPECT_TRUE(end["reached_target"]);
  EXPECT_LE(end["validation_loss"], last * 1.2);
  // The line of the step stays, and it has a checkpoint.
  EXPECT_EQ(o.events("step").back()["step"], steps);
  EXPECT_TRUE(std::filesystem::exists(path + "/" + checkpointName(steps) + "/" +
                                      kManifestFile));
  // The checkpoint knows.
  json resumed = run(arguments).events("end").at(0);
  EXPECT_EQ(resumed["steps"], steps);
  EXPECT_EQ(resumed["steps_before"], steps);
  EXPECT_TRUE(resumed["reached_target"]);
  EXPECT_EQ(resumed["best_validation_loss"], end["best_validation_loss"]);
  arguments[arguments.size() - 3] = "0";
  EXPECT_EQ(run(arguments).events("end").at(0)["steps"], 40);
}

/// The best one is that of the whole run, also of a process that resumes it.
TEST(Trainer, KeepsTheBestValidation) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = kFallingLoss;
  arguments.insert(arguments.end(), {"--checkpoint-dir", folder.path("c"),
                                     "--stop-after", "20"});
  json first = run(arguments).events("end").at(0);
  EXPECT_EQ(first["steps"], 20);
  // Steps of this size lose what was learned.
  arguments.back() = "40";
  arguments.insert(arguments.end(), {"--gradient-clip", "0", "--weight-decay",
                                     "0.9", "--accept-change", "optimizer"});
  arguments[4] = "8";
  arguments.erase(arguments.begin() + 5, arguments.begin() + 7);
  json second = run(arguments).events("end").at(0);
  EXPECT_EQ(second["steps"], 40);
  EXPECT_GT(second["validation_loss"], first["validation_loss"]);
  EXPECT_EQ(second["best_validation_loss"], first["best_validation_loss"]);
}

TEST(Trainer, SkipsSpikesAndReportsThem) {
  std::vector<std::string> arguments = {
      "--steps", "100",           "--json", "--log-interval",
      "10",      "--skip-spikes", "2.0"};
  Outcome one = runWith(makeLine(1, 2), arguments);
  ASSERT_EQ(one.code, kExitSuccess) << one.err;
  Outcome two = runWith(makeLine(2, 2), arguments);
  std::vector<json> steps = one.events("step"), others = two.events("step");
  ASSERT_EQ(steps.size(), others.size());
  int64_t skipped = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i]["step"], others[i]["step"]);
    EXPECT_EQ(steps[i]["loss"], others[i]["loss"]);
    EXPECT_EQ(steps[i].value("skipped", ""), others[i].value("skipped", ""));
    if (!steps[i].contains("skipped"))
      continue;
    ++skipped;
    EXPECT_GT(steps[i]["step"], kHistoryLength / 2);
    EXPECT_NE(steps[i]["skipped"].get<std::string>().find(
                  " is more than 2 standard deviations above the mean of the "
                  "last 128"),
              std::string::npos);
  }
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 20);
  EXPECT_EQ(one.events("end").at(0)["skipped_steps"], skipped);
  // For people.
  arguments.erase(arguments.begin() + 2);
  Outcome text = runWith(makeLine(1, 2), arguments);
  EXPECT_NE(text.out.find("  skipped: its "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(", " + std::to_string(skipped) + " step"),
            std::string::npos);
}

TEST(Trainer, EndsWhenAllStepsAreSkipped) {
  Outcome o =
      run({"--steps", "500", "--learning-rate", "1e30", "--json",
           "--gradient-clip", "0", "--skip-nonfinite", "--eval-interval", "0"});
  EXPECT_EQ(o.code, kExitRunFailed);
  EXPECT_NE(o.err.find("100 steps in a row were skipped, step "),
            std::string::npos)
      << o.err;
  EXPECT_EQ(o.events("step").back()["skipped"],
            "loss or gradient is not finite");
}

TEST(Trainer, ValidatesOnBatchesOfTheirOwnSize) {
  auto lossOf = [](int64_t microbatches, const std::string &size) {
    Outcome o = runWith(makeLine(1, microbatches),
                        {"--steps", "1", "--json", "--learning-rate", "0",
                         "--eval-steps", "3", "--eval-batch-size", size});
    EXPECT_EQ(o.code, kExitSuccess) << o.err;
    return o.events("end").at(0)["validation_loss"].get<double>();
  };
  EXPECT_EQ(lossOf(2, "0"), lossOf(2, "2"));
  EXPECT_NE(lossOf(2, "2"), lossOf(2, "4"));
  const std::string most = "9007199254740992";
  Outcome all = run({"--eval-steps", most, "--eval-batch-size", most});
  EXPECT_EQ(all.code, kExitBadInput);
  EXPECT_EQ(all.err, "error: 'eval-steps': expected a validation of fewer than "
                     "2^63 sequences, got 9007199254740992 batches of "
                     "9007199254740992\n");
  Outcome odd = run({"--steps", "1", "--eval-batch-size", "3"});
  EXPECT_EQ(odd.err, "error: 'eval-batch-size': expected a multiple of "
                     "the 2 sequences of a step for a model whose inputs are "
                     "not tokens, got 3\n");
}

/// The learning rate is that of all steps.
TEST(Trainer, StopsAfterAStepWithAFinalValidation) {
  std::vector<std::string> arguments = {"--steps", "20", "--json",
                                        "--log-interval", "1"};
  std::vector<json> whole = run(arguments).events("step");
  arguments.insert(arguments.end(), {"--stop-after", "7"});
  Outcome o = run(arguments);
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  std::vector<json> steps = o.events("step");
  ASSERT_EQ(steps.size(), 7u);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i]["learning_rate"], whole[i]["learning_rate"]);
    EXPECT_EQ(steps[i]["loss"], whole[i]["loss"]);
  }
  EXPECT_TRUE(steps.back()["validation_loss"].is_number());
  EXPECT_EQ(o.events("end")[0]["steps"], 7);
}

TEST(Trainer, TraceAndProfileNameActionsTasksAndKernels) {
  TemporaryFolder folder;
  Outcome o = run({"--steps", "2", "--json", "--profile", "--trace",
                   folder.path("trace.json")});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  std::map<std::string, int64_t> calls;
  for (const json &row : o.events("profile"))
    calls[row["name"]] = row["calls"];
  // The second step and 1 validation of 4 batches, 2 microbatches, 2 layers.
  EXPECT_EQ(calls["forward"], (1 + 4) * 2 * 2);
  EXPECT_EQ(calls["scale_row"], (1 + 4) * 2 * 2);
  EXPECT_EQ(calls["backward"], 2 * 2);
  EXPECT_EQ(calls["update"], 3);
  EXPECT_EQ(calls["timeline"], 1);
  EXPECT_EQ(calls["step"], 1);
  EXPECT_EQ(calls["first step"], 1);
  for (const json &row : o.events("profile"))
    if (row["name"] == "scale_row")
      EXPECT_EQ(row["bytes"], (1 + 4) * 2 * 2 * kSequence * 2 * kEmbed * 4);
  json trace = json::parse(folder.read("trace.json"));
  std::map<std::string, double> ends; // of the first action of that name
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X")
      ends.try_emplace(event["name"],
                       event["ts"].get<double>() + event["dur"].get<double>());
  EXPECT_TRUE(ends.count("1B1"));
  // Ranks of a process have one clock: a message ends on both at once.
  EXPECT_NEAR(ends.at("0SEND_F1"), ends.at("1RECV_F1"), 2); // us
}
