// SPDX-License-Identifier: Apache-2.0
//
// Flags and RUN.json: the values that they set, their order, and each error.
#include "test/tools/rota/OptionsTest.h"

#include "tools/rota/options/OptimizerRows.h"

#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/options/Bytes.h"
#include "runtime/options/Lists.h"

using namespace rota;
using llvm::StringRef;

namespace {

TEST_F(OptionsTest, FlagsWinOverTheFile) {
  std::string path = runFile(R"({"model": "m", "data": ["a", "b"], "steps": 7,
    "batch-size": 8, "sequence-length": 16, "learning-rate": 1e-3,
    "split-backward": true, "mesh": "stage=4", "write": "logits"})");
  ASSERT_EQ(parse(Command::Train, {path, "--steps=9", "--seed", "5"}),
            std::nullopt)
      << said;
  EXPECT_EQ(options.steps, 9);
  EXPECT_EQ(options.seed, 5);
  EXPECT_EQ(options.batchSize, 8);
  EXPECT_EQ(options.optimizer.learningRate, 1e-3);
  EXPECT_TRUE(options.compiler.schedule.splitBackward);
  EXPECT_EQ(options.compiler.schedule.stages, 4);
  EXPECT_EQ(options.data, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.write, std::vector<std::string>{"logits"});
  EXPECT_TRUE(options.given.contains("steps"));
  EXPECT_FALSE(options.given.contains("beta1"));
}

TEST_F(OptionsTest, ModelMayStandAlone) {
  EXPECT_EQ(parse(Command::Compile, {"mine.mlir"}), std::nullopt) << said;
  EXPECT_EQ(options.compiler.model, "mine.mlir");
  EXPECT_EQ(parse(Command::Compile, {"mine.mlir", "--model", "other.mlir"}),
            std::optional<int>(kExitBadInput));
  EXPECT_EQ(
      said,
      "error: '--model' stands twice, with 'other.mlir' and 'mine.mlir'\n");
}

TEST_F(OptionsTest, ListsRepeatAndSplit) {
  ASSERT_EQ(
      parse(Command::Probe, {"--model", "m", "--tokens", "t", "-o", "out",
                             "--write", "loss,logits", "--write", "gradients"}),
      std::nullopt)
      << said;
  EXPECT_EQ(options.write,
            (std::vector<std::string>{"loss", "logits", "gradients"}));
  EXPECT_EQ(options.output, "out");
}

TEST_F(OptionsTest, EachOptimizerHasItsOptions) {
  refuse({"--momentum", "0.9"},
         "'momentum': an option of sgd and muon, the optimizer is 'adamw'");
  refuse({"--optimizer", "sgd", "--beta1", "0.9"},
         "'beta1': an option of adamw and muon, the optimizer is 'sgd'");
  refuse({"--muon-dtype", "bf16"},
         "'muon-dtype': an option of muon, the optimizer is 'adamw'");
  refuse({"--optimizer", "adam"},
         "'--optimizer': expected one of 'adamw', 'sgd', 'muon', got 'adam'");
  refuse({"--optimizer", "sgd", "--nesterov"},
         "'nesterov': expected a momentum above 0, got 0");
  refuse({"--group", "norm=rate:1"},
         "'group': expected 'lr:X' or 'decay:X' for 'norm', got 'rate:1'");
}

TEST_F(OptionsTest, ACapacityNeedsNoBuffer) {
  refuse({"--expert-capacity", "1.25", "--expert-buffer", "1.5"},
         "'expert-buffer': expected none beside 'expert-capacity', which drops "
         "what the buffer would end the run for, got 1.5 and a capacity of "
         "1.25");
}

TEST_F(OptionsTest, PiecesNeedWholeSequences) {
  refuse({"--mesh", "expert=2,context=2", "--expert-pieces", "2"},
         "'expert-pieces': expected 1 on a mesh with 'context', whose ranks "
         "have parts of sequences already, got 2");
  refuse({"--expert-capacity", "1.25", "--expert-pieces", "2"},
         "'expert-pieces': expected 1 beside 'expert-capacity', which counts "
         "the rows of whole sequences, got 2");
}

TEST_F(OptionsTest, DefaultsAreTheOptimizers) {
  auto read = [&](std::vector<std::string> arguments) {
    arguments.push_back("mine.mlir");
    EXPECT_EQ(parse(Command::Plan, arguments), std::nullopt) << said;
    return options.compiler.shard;
  };
  EXPECT_EQ(read({}).values,
            "beta1=0.9,beta2=0.95,epsilon=1e-08,weight-decay=0.1");
  EXPECT_EQ(read({"--optimizer", "sgd"}).values, "momentum=0,weight-decay=0.1");
  auto muon = read({"--optimizer", "muon", "--weight-decay", "0"});
  EXPECT_EQ(muon.values, "momentum=0.95,beta1=0.9,beta2=0.95,epsilon=1e-08,"
                         "weight-decay=0");
  EXPECT_TRUE(muon.nesterov);
  EXPECT_FALSE(read({"--optimizer", "muon", "--nesterov=false"}).nesterov);
  EXPECT_EQ(
      read({"--group", "norm=decay:0,lr:0.1", "--group", "out=lr:2"}).groups,
      "norm=decay:0,lr:0.1,out=lr:2");
}

TEST_F(OptionsTest, WrongValues) {
  refuse({"--steps", "0"},
         "'--steps': expected an integer from 1 to 9007199254740992, got '0'");
  refuse(
      {"--steps", "12x"},
      "'--steps': expected an integer from 1 to 9007199254740992, got '12x'");
  refuse({"--steps", "99999999999999999999"},
         "'--steps': expected an integer from 1 to 9007199254740992, got "
         "'99999999999999999999'");
  refuse({"--seed", "-3"},
         "'--seed': expected an integer from 0 to 9007199254740992, got '-3'");
  refuse({"--learning-rate", "-1"},
         "'--learning-rate': expected a number of at least 0, got '-1'");
  refuse({"--learning-rate", "nan"},
         "'--learning-rate': expected a number of at least 0, got 'nan'");
  refuse({"--beta1", "1"},
         "'--beta1': expected a number from 0 to 0.999999999, got '1'");
  refuse({"--dtype", "fp8"},
         "'--dtype': expected one of 'f32', 'bf16', got 'fp8'");
  refuse({"--placement", "w"},
         "'--placement': expected one of 'loop', 'v', got 'w'");
  refuse({"--device", "tpu"},
         "'--device': expected one of 'cpu', 'simt', 'cuda', got 'tpu'");
  refuse({"--ranks", "gloo"},
         "'--ranks': expected one of 'threads', 'mpi', 'nccl', got 'gloo'");
  refuse({"--delay", "3"},
         "'--delay': expected an integer from 1 to 2, got '3'");
  refuse({"--steps", "1", "--steps", "2"},
         "'--steps' stands twice, with '1' and '2'");
  refuse({"--steps"}, "expected a value after '--steps'");
}

TEST_F(OptionsTest, UnknownFlags) {
  refuse({"--step", "3"}, "unknown flag '--step'; did you mean '--steps'?");
  refuse({"--learning_rate=3"},
         "unknown flag '--learning_rate'; did you mean '--learning-rate'?");
  refuse({"--quantum"}, "unknown flag '--quantum'");
  refuse({"--lr", "3"}, "unknown flag '--lr'; did you mean '--learning-rate'?");
  refuse({"--resum", "never"},
         "unknown flag '--resum'; did you mean '--resume'?");
  refuse({"--sequence", "3"},
         "unknown flag '--sequence'; did you mean '--sequence-length'?");
  refuse({"--chunks", "3"},
         "unknown flag '--chunks'; did you mean '--repeats'?");
  refuse({"--stages", "3"}, "'--stages' does not apply to 'rota train'; did "
                            "you mean '--mesh stage=N'?");
  refuse({"--emit", "llvm"}, "'--emit' does not apply to 'rota train'");
  refuse({"a.json", "b.json"},
         "expected one RUN.json, got 'a.json' and 'b.json'");
}

// Names of numbers that once were others.
TEST_F(OptionsTest, FormerNamesOfASchedule) {
  for (auto [flag, message] :
       {std::pair("--ranks", "'--ranks' does not apply to 'rota schedule'; did "
                             "you mean '--stages'?"),
        {"--chunks", "unknown flag '--chunks'; did you mean '--repeats'?"}}) {
    EXPECT_EQ(parse(Command::Schedule, {"gpipe", flag, "2"}),
              std::optional<int>(kExitBadInput));
    EXPECT_EQ(said, std::string("error: ") + message + "\n");
  }
}

// A plan takes the command line of a run as it is.
TEST_F(OptionsTest, PlansTakeTheFlagsOfARun) {
  ASSERT_EQ(parse(Command::Plan, {"mine.mlir", "--data", "d", "--steps", "5",
                                  "--mesh", "stage=1"}),
            std::nullopt)
      << said;
  EXPECT_EQ(said, "note: not needed to plan: --steps, --data\n");
  EXPECT_EQ(parse(Command::Plan, {"mine.mlir", "--steps", "0"}),
            std::optional<int>(kExitBadInput));
  EXPECT_EQ(parse(Command::Plan, {"mine.mlir", "--shard-size", "5GB"}),
            std::optional<int>(kExitBadInput));
  EXPECT_EQ(said, "error: '--shard-size' does not apply to 'rota plan'\n");
}

TEST_F(OptionsTest, Mesh) {
  refuse({"--mesh", "stage"}, "'mesh': expected AXIS=SIZE, got 'stage'");
  refuse({"--mesh", "stage=x"}, "'mesh': expected AXIS=SIZE, got 'stage=x'");
  refuse({"--mesh", "pipe=2"},
         "'mesh': expected an axis of data, stage, fsdp, expert, context, "
         "sequence, tensor, got 'pipe'");
  refuse({"--mesh", "stage=2,stage=2"}, "'mesh': axis 'stage' stands twice");
  refuse({"--mesh", "stage=0"}, "'mesh': expected a size from 1 to 16777216, "
                                "or -1, for axis 'stage', got "
                                "0");
  refuse({"--mesh", "data=-1,stage=-1", "--devices", "4"},
         "'mesh': expected at most one axis of size -1, got "
         "'data=-1,stage=-1'");
  refuse({"--mesh", "stage=-1"},
         "'mesh': expected 'devices', or processes of a launcher, for an "
         "axis of size -1, got 'stage=-1'");
  refuse({"--mesh", "data=-1,stage=4", "--devices", "6"},
         "'mesh': expected the other axes to divide the number of ranks, got 4 "
         "and 6");
  refuse({"--mesh", "data=2,stage=4", "--devices", "4"},
         "'mesh': expected as many ranks as there are devices, got 8 and 4");
  refuse({"--mesh", "data=65536,stage=65536"},
         "'mesh': expected at most 16777216 ranks, got "
         "'data=65536,stage=65536'");
  ASSERT_EQ(parse(Command::Train,
                  {"--model", "m", "--batch-size", "8", "--sequence-length",
                   "4", "--mesh", "stage=4,data=-1", "--devices", "8"}),
            std::nullopt)
      << said;
  EXPECT_EQ(options.compiler.shard.meshText, "data=2,stage=4");
  EXPECT_EQ(options.compiler.schedule.stages, 4);
}

// A schedule brings the chunks and the placement that it demands; what is given
// stays, and the schedule's check reports it.
TEST_F(OptionsTest, DemandedShape) {
  auto shape = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--model", "m", "--batch-size", "8", "--sequence-length",
                      "4", "--schedule", "zbv", "--mesh", "stage=2"});
    EXPECT_EQ(parse(Command::Train, arguments), std::nullopt) << said;
    return std::pair(options.compiler.schedule.repeats,
                     options.compiler.schedule.placement);
  };
  using rota::pipe::Placement;
  EXPECT_EQ(shape({}), std::pair(int64_t(2), Placement::V));
  EXPECT_EQ(shape({"--repeats", "3"}), std::pair(int64_t(3), Placement::V));
  EXPECT_EQ(shape({"--placement", "loop"}),
            std::pair(int64_t(2), Placement::Loop));
  EXPECT_EQ(shape({"--layers-per-chunk", "2"}).first, 0);
}

// Without a number, the fewest microbatches that the schedule takes.
TEST_F(OptionsTest, DefaultMicrobatches) {
  auto microbatches = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--model", "m", "--batch-size", "8",
                                       "--sequence-length", "4"});
    EXPECT_EQ(parse(Command::Train, arguments), std::nullopt) << said;
    return options.compiler.schedule.microbatches;
  };
  EXPECT_EQ(microbatches({}), 1);
  EXPECT_EQ(said, "");
  EXPECT_EQ(microbatches({"--mesh", "stage=2"}), 2);
  EXPECT_EQ(said, "note: 'microbatches': 2, the fewest that schedule "
                  "'circular' takes on 2 stages\n");
  EXPECT_EQ(microbatches({"--mesh", "stage=2", "--delay", "2"}), 4);
  EXPECT_EQ(microbatches({"--mesh", "stage=2", "--schedule", "gpipe"}), 1);
  EXPECT_EQ(said, "");
  EXPECT_EQ(microbatches({"--mesh", "stage=2", "--schedule", "gpipe",
                          "--pipeline-layers", "2"}),
            2);
  EXPECT_EQ(microbatches({"--mesh", "stage=2", "--microbatches", "8"}), 8);
  EXPECT_EQ(said, "");
  std::string path =
      folder.write("schedule.csv", "0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n");
  EXPECT_EQ(microbatches({"--schedule", path}), 4);
  refuse({"--schedule", path, "--microbatches", "8"},
         "'microbatches': expected 4, those of '" + path + "', got 8");
  std::string three = folder.write("three.csv", "0F0,0B0,0F1,0B1,0F2,0B2\n");
  refuse({"--schedule", three},
         "'batch-size': expected a multiple of 'microbatches', got 8 and 3; "
         "'microbatches' is 3, those of '" +
             three + "'");
  // An error says that nobody gave the number.
  refuse({"--mesh", "stage=3"},
         "'batch-size': expected a multiple of 'microbatches', got 8 and 3; "
         "'microbatches' is 3, the fewest that schedule 'circular' takes on 3 "
         "stages");
  refuse({"--mesh", "stage=2,data=8"},
         "'batch-size': expected the sequences of a microbatch to be a "
         "multiple of data * fsdp * expert, got 4 and 8; 'microbatches' is 2, "
         "the fewest that schedule 'circular' takes on 2 stages");
}

// A file says its chunks and their placement, as it says its microbatches.
TEST_F(OptionsTest, ShapeOfAFile) {
  auto shape = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model", "m", "--batch-size", "8",
                               "--sequence-length", "4"});
    EXPECT_EQ(parse(Command::Train, more), std::nullopt) << said;
    const auto &layers = options.compiler.schedule;
    return std::pair(layers.repeats, layers.placement);
  };
  std::string loop =
      folder.write("loop.csv", "\xEF\xBB\xBF"
                               "0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n");
  std::string v = folder.write("v.csv", "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  std::string alone = folder.write("alone.csv", "0F0,1F0,1B0,0B0\n");
  EXPECT_EQ(shape({"--mesh", "stage=2", "--schedule", loop}),
            std::pair(int64_t(2), pipe::Placement::Loop));
  EXPECT_EQ(shape({"--mesh", "stage=2", "--schedule", v}),
            std::pair(int64_t(2), pipe::Placement::V));
  EXPECT_EQ(shape({"--schedule", alone}).first, 2);
  EXPECT_EQ(said, "");
  refuse({"--schedule", alone, "--repeats", "1"},
         "'repeats': expected 2, those of '" + alone + "', got 1");
}

// 0 starts a gather right before its use; without a number there is no bound.
TEST_F(OptionsTest, Prefetch) {
  std::vector<std::string> fsdp = {"--model", "m.mlir", "--mesh", "fsdp=2"};
  ASSERT_EQ(parse(Command::Train, fsdp), std::nullopt) << said;
  EXPECT_EQ(options.compiler.complete.prefetch, -1);
  fsdp.insert(fsdp.end(), {"--prefetch", "0"});
  ASSERT_EQ(parse(Command::Train, fsdp), std::nullopt) << said;
  EXPECT_EQ(options.compiler.complete.prefetch, 0);
}

TEST_F(OptionsTest, WeightGathering) {
  refuse(
      {"--mesh", "data=3"},
      "'batch-size': expected the sequences of a microbatch to be a multiple "
      "of data * fsdp * expert, got 8 and 3");
  refuse({"--weight-gather", "once"},
         "'weight-gather': expected a mesh with an fsdp axis above 1, got "
         "'stage=1'");
  refuse({"--shard-optimizer"},
         "'shard-optimizer': expected a mesh with an axis above 1 besides "
         "stage and fsdp, got 'stage=1'");
  refuse(
      {"--mesh", "fsdp=2,stage=2", "--weight-gather", "per-repeat"},
      "'weight-gather': expected more than 1 repeat for 'per-repeat', got 1; "
      "with one repeat 'once' gathers as often");
  refuse(
      {"--mesh", "fsdp=2", "--weight-gather", "once", "--window", "3"},
      "'window': expected no window with 'weight-gather' once, which gathers "
      "every chunk, got 3");
  refuse({"--mesh", "fsdp=2", "--weight-gather", "once", "--weight-gather",
          "per-repeat"},
         "'--weight-gather' stands twice, with 'once' and 'per-repeat'");
}

// A file with UNSHARD and an option that would decide the same.
TEST_F(OptionsTest, GathersOfAFile) {
  std::string path =
      folder.write("gathers.csv", "0UNSHARD,0F0,0B0,0REDUCE_GRAD\n");
  std::vector<std::string> file = {"--mesh", "fsdp=2", "--schedule", path};
  for (auto [name, value] :
       {std::pair("weight-gather", "once"), {"prefetch", "1"}}) {
    std::vector<std::string> arguments = file;
    arguments.insert(arguments.end(), {std::string("--") + name, value});
    refuse(arguments, "'" + std::string(name) +
                          "': expected a schedule without UNSHARD, got '" +
                          path + "', which has it");
  }
  file.insert(file.end(), {"--model", "m.mlir", "--window", "2"});
  EXPECT_EQ(parse(Command::Train, file), std::nullopt) << said;
}

TEST_F(OptionsTest, SizesHaveUnits) {
  EXPECT_EQ(bytesOfText("5GB"), 5'000'000'000);
  EXPECT_EQ(bytesOfText("500MB"), 500'000'000);
  EXPECT_EQ(bytesOfText("3KiB"), 3072);
  EXPECT_EQ(bytesOfText("80GiB"), 85'899'345'920);
  EXPECT_EQ(bytesOfText("100"), 100);
  for (const char *wrong : {"", "GB", "5 GB", "0GB", "-1", "5TB", "1.5GB",
                            "9999999999999GB", "9999999999999GiB"})
    EXPECT_EQ(bytesOfText(wrong), std::nullopt) << wrong;
  EXPECT_EQ(bytesText(85'500'000'000), "85.5 GB");
  EXPECT_EQ(bytesText(1'234'567, /*digits=*/2), "1.23 MB");
  EXPECT_EQ(bytesText(999), "999 bytes");
  refuse({"--memory", "much"}, "'memory': expected a number of bytes such as "
                               "80GiB or 500MB, got 'much'");
  refuse({"--remat", "auto"},
         "'remat': expected 'memory' beside auto, got none");
}

TEST_F(OptionsTest, CombinationsThatDoNotFit) {
  refuse({"--microbatches", "3"},
         "'batch-size': expected a multiple of 'microbatches', got 8 and 3");
  refuse({"--schedule", "zigzag"}, "'schedule': expected one of " +
                                       rota::pipe::scheduleNames() +
                                       ", or a .csv file, got 'zigzag'");
  refuse({"--learning-rate", "0.1", "--min-learning-rate", "0.5"},
         "'min-learning-rate': expected at most 'learning-rate', got 0.5 and "
         "0.1");
}

TEST_F(OptionsTest, MissingOptions) {
  EXPECT_EQ(parse(Command::Train, {}), std::optional<int>(kExitBadInput));
  EXPECT_EQ(said,
            "error: '--model', '--batch-size' and '--sequence-length' are "
            "missing, as in: rota train --model models/configs/tiny --data "
            "english.txt --batch-size 16 --sequence-length 256 --mesh "
            "stage=4\n");
  EXPECT_EQ(parse(Command::Probe, {"--model", "m", "--tokens", "t"}),
            std::optional<int>(kExitBadInput));
  EXPECT_TRUE(StringRef(said).starts_with(
      "error: '--output' is missing, as in: rota probe --model "))
      << said;
  EXPECT_EQ(parse(Command::Plan, {"--model", "m"}),
            std::optional<int>(kExitBadInput));
  EXPECT_TRUE(StringRef(said).starts_with("error: '--batch-size' and "
                                          "'--sequence-length' are missing"))
      << said;
  EXPECT_EQ(parse(Command::Plan, {"--model", "m.mlir"}), std::nullopt) << said;
}

TEST_F(OptionsTest, CommasSeparateTheElementsOfLists) {
  using Texts = std::vector<std::string>;
  const std::pair<const char *, Texts> cases[] = {
      {R"("a.bin:0.7,b")", {"a.bin:0.7", "b"}}, // as in a flag
      {R"("a\\,b,c\\")", {"a,b", "c\\"}},
      {R"(["a.bin:0.7", "b"])", {"a.bin:0.7", "b"}},
      {R"(["one, two.bin", ",", "c\\,"])", {"one, two.bin", ",", "c\\,"}}};
  for (const auto &[data, elements] : cases) {
    EXPECT_EQ(parse(Command::Train,
                    {"--model", "m.mlir",
                     runFile(std::string("{\"data\": ") + data + "}")}),
              std::nullopt)
        << said;
    EXPECT_EQ(options.data, elements);
  }
  EXPECT_EQ(splitList("a\\,b,,c\\"), (Texts{"a,b", "", "c\\"}));
  for (const char *element : {"", ",", "a,b", "\\,", "a\\\\,,b\\"})
    EXPECT_EQ(splitList(listText(element)), Texts{element});
}

TEST_F(OptionsTest, BadFiles) {
  refuseFile("{\n  \"stepz\": 3 }", ":2:3",
             "unknown key 'stepz'; did you mean 'steps'?");
  refuseFile("{\"steps\": \"3\"}", ":1:2",
             "'steps': expected an integer from 1 to 9007199254740992, got "
             "\"3\"");
  refuseFile(
      "{\"steps\": 2.5}", ":1:2",
      "'steps': expected an integer from 1 to 9007199254740992, got 2.5");
  refuseFile("{\"model\": 3}", ":1:2", "'model': expected a string, got 3");
  refuseFile("{\"json\": \"yes\"}", ":1:2",
             "'json': expected true or false, got \"yes\"");
  refuseFile("{\"data\": [1]}", ":1:2",
             "'data': expected a string or an array of strings, got [1]");
  refuseFile("{\"data\": [\"a.bin\", \"\"]}", ":1:2",
             "'data': expected a value, got an empty text");
  refuseFile("{\"beta1\": -0.5}", ":1:2",
             "'beta1': expected a number from 0 to 0.999999999, got '-0.5'");
  refuseFile("{\"beta1\": null}", ":1:2",
             "'beta1': expected a number from 0 to 0.999999999, got null");
  refuseFile("{\"seed\": 1,\n\"seed\": 2}", ":2:1",
             "key 'seed' stands twice in one object");
  refuseFile("[]", ":1:1", "expected an object, got an array");
  EXPECT_EQ(parse(Command::Train, {"/nowhere/run.json"}),
            std::optional<int>(kExitBadInput));
  EXPECT_EQ(said, "error: /nowhere/run.json: cannot read the file: No such "
                  "file or directory\n");
}

TEST_F(OptionsTest, ModelIsBuiltForOneMicrobatch) {
  ASSERT_EQ(parse(Command::Compile,
                  {"--model", "m", "--batch-size", "12", "--microbatches", "4",
                   "--sequence-length", "32", "--dtype", "bf16"}),
            std::nullopt)
      << said;
  auto build = compilerOptions(options).build;
  EXPECT_EQ(build.sequences, 3);
  EXPECT_EQ(build.sequenceLength, 32);
  EXPECT_EQ(build.compute, mlir::rota::ComputeType::BF16);
}

TEST_F(OptionsTest, TrainerArguments) {
  ASSERT_EQ(
      parse(Command::Probe, {"--model", "m", "--tokens", "t.safetensors", "-o",
                             "out", "--steps", "10", "--learning-rate", "0.01",
                             "--write", "loss,loss-curve", "--json"}),
      std::nullopt)
      << said;
  EXPECT_EQ(trainerArguments(Command::Probe, options),
            (std::vector<std::string>{"probe",
                                      "--learning-rate",
                                      "0.01",
                                      "--warmup-steps",
                                      "0",
                                      "--beta1",
                                      "0.9",
                                      "--beta2",
                                      "0.95",
                                      "--epsilon",
                                      "1e-08",
                                      "--weight-decay",
                                      "0.1",
                                      "--gradient-clip",
                                      "1",
                                      "--steps",
                                      "10",
                                      "--seed",
                                      "1",
                                      "--tokens",
                                      "t.safetensors",
                                      "--write",
                                      "loss",
                                      "--write",
                                      "loss-curve",
                                      "--ranks",
                                      "threads",
                                      "--threads",
                                      "0",
                                      "--output",
                                      "out",
                                      "--json"}));
}

/// The trainer once had bounds of its own, and refused these steps.
TEST_F(OptionsTest, TheTrainerReadsWhatTheToolGives) {
  ASSERT_EQ(parse(Command::Train,
                  {"--model", "m.mlir", "--data", R"(a,b,c\,d)", "--eval-steps",
                   "2000000", "--beta2", "0.99", "--token-type", "uint16",
                   "--ranks", "mpi", "--json"}),
            std::nullopt)
      << said;
  std::vector<std::string> arguments =
      trainerArguments(Command::Train, options);
  arguments.insert(arguments.begin(), "trainer");
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  Options read;
  read.optimizer.own = options.optimizer.own;
  for (ProgramOption &own : read.optimizer.own)
    own.value = own.least;
  Command command;
  EXPECT_EQ(parseOptions(int(argv.size()), argv.data(), true, command, read),
            std::nullopt);
  EXPECT_EQ(command, Command::Train);
  std::vector<Option> given = trainOptions(options), taken = trainOptions(read);
  for (size_t i = 0; i < given.size(); ++i)
    EXPECT_EQ(valueTexts(given[i]), valueTexts(taken[i])) << given[i].name;
}

/// Those of nodes, too; of a search they are not those of the run's launcher.
TEST_F(OptionsTest, ImportsTakeTheDevices) {
  std::string flags = "--micro-batch-size 1 --global-batch-size 16 "
                      "--seq-length 128 --tensor-model-parallel-size 4";
  std::vector<std::string> arguments = {
      "--model",  "m",        "--machine", "h100-sxm-80gb", "--nodes", "2",
      "--import", "megatron", flags};
  EXPECT_EQ(parse(Command::Plan, arguments), std::nullopt) << said;
  EXPECT_EQ(options.compiler.shard.meshText, "data=4,tensor=4");
  arguments.back() = "torchrun --nproc-per-node 8 pretrain_gpt.py " + flags;
  arguments.push_back("--search");
  EXPECT_EQ(parse(Command::Plan, arguments), std::nullopt) << said;
  EXPECT_EQ(options.devices, 16);
}

} // namespace
