// SPDX-License-Identifier: Apache-2.0
//
// Plans in other engines' words: what is exported is imported as the same run.
#include "tools/planner/EngineRuns.h"
#include "tools/planner/engines/Megatron.h"

#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

using namespace rota;
using namespace rota::engines;

namespace {

std::string configOf(const std::string &model) {
  std::ifstream file(ROTA_SOURCE_DIR "/models/configs/" + model +
                     "/config.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A run of 64 sequences of 1024 on eight ranks, in two stages.
EngineRun runOf(const std::string &model) {
  EngineRun run;
  run.config = configOf(model);
  run.modelName = model;
  std::string error;
  int64_t layers = readModel(run.config, error)->layers;
  run.data = 4;
  run.stage = 2;
  run.batch = 64;
  run.length = 1024;
  run.microbatches = 16;
  run.schedule = "1f1b";
  run.layers = {layers / 2, layers / 2};
  run.isBf16 = true;
  run.numbers = {{"beta1", 0.9},           {"beta2", 0.95},
                 {"epsilon", 1e-8},        {"weight-decay", 0.1},
                 {"gradient-clip", 1},     {"learning-rate", 3e-4},
                 {"min-learning-rate", 0}, {"warmup-steps", 20}};
  return run;
}

EngineRun interleavedRun() {
  EngineRun run = runOf("llama-3.1-405b"); // 126 layers
  run.data = 2;
  run.context = 2;
  run.sequence = 8;
  run.stage = 4;
  run.repeats = 8;
  run.schedule = "interleaved-1f1b";
  run.contextExchange = "balanced-ring";
  run.shardsOptimizer = run.hasBf16Gradients = true;
  run.layers.assign(32, 4);
  run.layers.front() = run.layers.back() = 3;
  return run;
}

EngineRun expertsRun() {
  EngineRun run = runOf("mixtral-8x7b");
  run.data = 1;
  run.expert = 4;
  run.sequence = 2;
  run.remat = "full";
  run.tensorExchange = "gather";
  return run;
}

EngineRun singleStage() {
  EngineRun run = runOf("llama-3.1-8b");
  run.stage = run.microbatches = 1;
  run.accumulate = 16;
  run.tensor = 2;
  run.layers.clear();
  run.schedule.clear();
  run.tensorExchange = "gather";
  return run;
}

EngineRun shardedRun() {
  EngineRun run = runOf("qwen3-30b-a3b");
  run.data = 2;
  run.fsdp = 4;
  run.stage = run.microbatches = 1;
  run.accumulate = 8;
  run.layers.clear();
  run.schedule.clear();
  run.weightGather = "per-layer";
  run.rateSchedule = "wsd";
  run.numbers["decay-share"] = 0.25;
  run.steps = 400;
  return run;
}

/// The options of `run` in an order that does not matter.
std::map<std::string, std::vector<std::string>> optionsOfRun(EngineRun run) {
  OptionTexts options = optionsOf(run);
  return {options.begin(), options.end()};
}

void expectRoundTrip(Engine engine, const EngineRun &run) {
  std::string error;
  auto made = exportRun(engine, run, error);
  ASSERT_TRUE(made) << error;
  ImportRequest request{engine, made->files.front().text, "run", run.devices()};
  auto import = importRun(request, error);
  ASSERT_TRUE(import) << error << "\n" << request.text;
  EXPECT_TRUE(import->ignored.empty());
  std::map<std::string, std::vector<std::string>> options(
      import->options.begin(), import->options.end());
  EXPECT_EQ(options, optionsOfRun(run)) << request.text;
  EXPECT_EQ(readModel(import->config, error)->experts,
            readModel(run.config, error)->experts);
}

TEST(EnginesTest, MegatronRoundTrips) {
  for (const EngineRun &run :
       {runOf("gpt2"), runOf("llama-3.1-8b"), runOf("mistral-7b"),
        runOf("qwen2.5-7b"), runOf("qwen3-8b"), interleavedRun(), expertsRun(),
        singleStage(), shardedRun()})
    expectRoundTrip(Engine::Megatron, run);
}

TEST(EnginesTest, MegatronModelsRoundTrip) {
  for (const char *name :
       {"gpt2", "llama-2-7b", "llama-3.1-70b", "mistral-7b", "mixtral-8x7b",
        "qwen2.5-7b", "qwen3-8b", "qwen3-30b-a3b"}) {
    std::string error;
    EngineRun run = runOf(name);
    auto made = exportRun(Engine::Megatron, run, error);
    ASSERT_TRUE(made) << error;
    auto import = importRun(
        {Engine::Megatron, made->files.front().text, "", run.devices()}, error);
    ASSERT_TRUE(import) << error;
    EngineModel before = *readModel(run.config, error);
    EngineModel after = *readModel(import->config, error);
    if (before.experts > 0) // no expert has the width of a dense layer
      before.feedForward = after.feedForward;
    EXPECT_TRUE(before == after) << name << "\n" << import->config;
  }
}

TEST(EnginesTest, TorchTitanRoundTrips) {
  EngineRun run = runOf("llama-3.1-8b");
  run.data = run.fsdp = 2;
  expectRoundTrip(Engine::TorchTitan, [&] {
    EngineRun titan = run;
    titan.steps = 10000;
    return titan;
  }());
  run = interleavedRun();
  run.fsdp = 2;
  run.data = 1;
  run.shardsOptimizer = run.hasBf16Gradients = false;
  run.steps = 10;
  expectRoundTrip(Engine::TorchTitan, run);
}

TEST(EnginesTest, LayoutsAreMegatrons) {
  std::string error;
  EXPECT_EQ(megatron::layoutText({1, 2, 2, 2, 5, 1}), "Et|(tt|)*3t*5|tL");
  EXPECT_EQ(megatron::layoutText({0, 9, 0}), "E|t*9|L");
  for (std::vector<int64_t> layers :
       {std::vector<int64_t>{1, 2, 2, 2, 5, 1}, {0, 9, 0}, {7, 7}})
    EXPECT_EQ(megatron::readLayout(megatron::layoutText(layers), error),
              layers);
  EXPECT_EQ(megatron::readLayout("Ettt,|(tt|)*2,t*0|L", error), std::nullopt);
  EXPECT_EQ(megatron::readLayout("E,ttt|(tt|)*2,t|L", error),
            (std::vector<int64_t>{3, 2, 2, 1, 0}));
  for (const char *wrong : {"", "E", "tL", "Et|m|L", "E||L", "E(t|)L",
                            "E(t|)*99999999|L", "Et*x|L"})
    EXPECT_FALSE(megatron::readLayout(wrong, error)) << wrong;
}

/// The error of flags on eight ranks.
std::string errorOf(const std::string &flags, int64_t devices = 8) {
  std::string error;
  auto import = importRun({Engine::Megatron, flags, "", devices, true}, error);
  EXPECT_FALSE(import) << flags;
  return error;
}

TEST(EnginesTest, MegatronMistakesAreNamed) {
  EXPECT_EQ(errorOf("--micro-batch-size 1 --seq-lenght 4096"),
            "word 3: unknown flag '--seq-lenght'; did you mean "
            "'--seq-length'?");
  EXPECT_EQ(errorOf("--bf16 true"), "word 2: expected a flag, got 'true'");
  EXPECT_EQ(errorOf("--bf16=true"),
            "word 1: '--bf16': expected no value, got 'true'");
  EXPECT_EQ(errorOf("--bf16 --lr x"),
            "word 2: '--lr': expected a number of at least 0, got 'x'");
  EXPECT_EQ(errorOf("--bf16 --perform-rl-step"),
            "word 2: '--perform-rl-step': reinforcement learning; Rota's plans "
            "cannot follow it");
  EXPECT_EQ(errorOf("--tensor-model-parallel-size 3"),
            "expected devices that are a multiple of tensor * pipeline * "
            "context ranks, got 8 and 3");
  EXPECT_EQ(errorOf("--bf16", 0),
            "expected 'devices' beside the flags: Megatron takes the number of "
            "ranks from its launcher");
  std::string batch = "--micro-batch-size 1 --seq-length 128 ";
  EXPECT_EQ(errorOf(batch + "--fp16"),
            "word 5: '--fp16': expected --bf16 or none, as Rota computes in "
            "bf16 and f32");
  EXPECT_EQ(errorOf(batch + "--global-batch-size 12"),
            "word 5: '--global-batch-size': expected a multiple of "
            "'--micro-batch-size' * data-parallel ranks, got 12 and 8");
  EXPECT_EQ(
      errorOf(batch + "--num-layers 7 --pipeline-model-parallel-size 2"),
      "word 5: '--num-layers': expected a multiple of the pipeline's ranks, "
      "without layers of the first and the last one where they are "
      "given, and with the embedding and the loss where they count, got "
      "7 and 2");
  std::string stages = batch + "--num-layers 8 --pipeline-model-parallel-size "
                               "2 --num-virtual-stages-per-pipeline-rank 4 ";
  EXPECT_EQ(errorOf(stages + "--num-layers-per-virtual-pipeline-stage 2"),
            "word 11: '--num-layers-per-virtual-pipeline-stage': expected the "
            "chunks on a rank that '--num-virtual-stages-per-pipeline-rank' "
            "says, got 2 and 4");
  EXPECT_NE(errorOf(stages + "--pipeline-model-parallel-layout Etttt|ttttL")
                .find("says, got 1 and 4"),
            std::string::npos);
}

/// A model's flags of which no family is made are all named.
TEST(EnginesTest, MegatronModelsOfNoFamilyAreNamed) {
  std::string error, flags = "--micro-batch-size 1 --seq-length 128 "
                             "--num-layers 4 --hidden-size 64 "
                             "--num-attention-heads 4 --vocab-size 300 "
                             "--max-position-embeddings 128 ";
  auto errorWith = [&](const char *more) {
    EXPECT_FALSE(importRun({Engine::Megatron, flags + more, "", 2}, error));
    return error;
  };
  EXPECT_TRUE(errorWith("--group-query-attention --num-experts 4 "
                        "--window-size 7,0")
                  .ends_with("--position-embedding-type learned_absolute "
                             "--group-query-attention --num-experts 4 "
                             "--window-size 7,0"));
  EXPECT_EQ(errorWith("--expert-model-parallel-size 2"),
            "word 15: '--expert-model-parallel-size': expected "
            "'--num-experts' beside it, got none");
}

/// As a shell reads them: a layout whose signs are escaped or in quotes. Of two
/// equal flags the last counts, which a remark says.
TEST(EnginesTest, WordsAreThoseOfAShell) {
  std::string error;
  for (const char *layout : {"Et\\|\\(t\\|\\)*2tL", "'Et|(t|)*2tL'",
                             "\"Et|(t|)*2tL\"", "E\\t'|(t|)'*2\"tL\""}) {
    auto import = importRun({Engine::Megatron,
                             std::string("--micro-batch-size 1 --seq-length "
                                         "128 --num-layers 4 --lr 1e-3 "
                                         "--global-batch-size 2 "
                                         "--pipeline-model-parallel-size 2 "
                                         "--pipeline-model-parallel-layout ") +
                                 layout + " \\\n --lr 2e-3",
                             "", 2, true},
                            error);
    ASSERT_TRUE(import) << layout << ": " << error;
    EXPECT_NE(
        std::ranges::find(import->options,
                          OptionTexts::value_type("learning-rate", {"0.002"})),
        import->options.end());
    EXPECT_EQ(import->remarks.front().subject, "--lr (word 7)");
    EXPECT_EQ(import->remarks.front().reason,
              "word 15 says it again, and counts");
  }
  EXPECT_EQ(errorOf("--lr '1e-3"), "expected an end of the quote");
}

TEST(EnginesTest, LaunchersSayTheRanks) {
  std::string error;
  auto import =
      importRun({Engine::Megatron,
                 "torchrun --nproc_per_node 8 --nnodes=2 pretrain_gpt.py "
                 "--micro-batch-size 1 --seq-length 128 --log-interval 10",
                 "", 0, true},
                error);
  ASSERT_TRUE(import) << error;
  EXPECT_EQ(import->options.front().second.front(), "data=16");
  EXPECT_EQ(import->ignored,
            std::vector<std::string>{"--log-interval (word 10)"});
}

/// A run on other ranks than those of the machine that a plan is wanted for.
TEST(EnginesTest, ASearchHasDevicesOfItsOwn) {
  std::string error;
  ImportRequest request{Engine::Megatron,
                        "--micro-batch-size 1 --seq-length 128 "
                        "--tensor-model-parallel-size 4",
                        "", 2, true};
  request.isSearched = true;
  EXPECT_FALSE(importRun(request, error));
  request.text += " --global-batch-size 24";
  auto import = importRun(request, error);
  ASSERT_TRUE(import) << error;
  EXPECT_EQ(import->options[1].second.front(), "24");
  request.text = "torchrun --nproc-per-node 8 pretrain_gpt.py " + request.text;
  import = importRun(request, error);
  ASSERT_TRUE(import) << error;
  EXPECT_EQ(import->options.front().second.front(), "data=2,tensor=4");
  EXPECT_NE(import->remarks.front().subject, "the launcher's 8 ranks");
  request.isSearched = false;
  EXPECT_FALSE(importRun(request, error)); // 2 ranks are no multiple of 4
  request.devices = 4;
  import = importRun(request, error);
  ASSERT_TRUE(import) << error;
  EXPECT_EQ(import->remarks.front().subject, "the launcher's 8 ranks");

  ImportRequest titan{Engine::TorchTitan,
                      "[parallelism]\ndata_parallel_shard_degree = 8\n"
                      "[training]\nglobal_batch_size = 64\n",
                      "a.toml", 2, true};
  EXPECT_FALSE(importRun(titan, error));
  titan.isSearched = true;
  EXPECT_TRUE(importRun(titan, error)) << error;
}

TEST(EnginesTest, TorchTitanMistakesHavePlaces) {
  auto errorIn = [](const std::string &text) {
    std::string error;
    EXPECT_FALSE(
        importRun({Engine::TorchTitan, text, "a.toml", 8, true}, error));
    return error;
  };
  EXPECT_EQ(errorIn("[training]\nseq_length = 4096\n"),
            "a.toml:2:14: unknown setting 'training.seq_length'; did you mean "
            "'training.seq_len'?");
  EXPECT_EQ(errorIn("[training]\nseq_len = \"x\"\n"),
            "a.toml:2:11: 'training.seq_len': expected no text, got 'x'");
  EXPECT_EQ(errorIn("[parallelism]\ntensor_parallel_degree = 3\n"),
            "a.toml: expected devices that are a multiple of the other ranks, "
            "got 8 and 3");
  EXPECT_TRUE(errorIn("[training\n").starts_with("a.toml:1:"));
}

TEST(EnginesTest, ExportsNameWhatCannotRun) {
  std::string error;
  EngineRun run = runOf("llama-3.1-8b");
  EXPECT_FALSE(exportRun(Engine::TorchTitan, run, error));
  EXPECT_TRUE(error.starts_with("it cannot run the plan: expected fsdp=4 in "
                                "the place of data=4"));
  run.tensor = run.sequence = 2;
  EXPECT_FALSE(exportRun(Engine::Megatron, run, error));
  EXPECT_FALSE(exportRun(Engine::MaxText, interleavedRun(), error));
  EXPECT_TRUE(error.starts_with("it cannot run the plan: expected chunks with "
                                "equal numbers"));
  run.config.clear();
  EXPECT_FALSE(exportRun(Engine::Megatron, run, error));
  EXPECT_TRUE(exportRun(Engine::Torch, run, error));
}

TEST(EnginesTest, FilesSayOrdersWithoutAName) {
  std::string error;
  EngineRun run = runOf("llama-3.1-8b");
  run.data = 1;
  run.fsdp = 4;
  run.schedule = "gpipe";
  EXPECT_EQ(exportRun(Engine::TorchTitan, run, error)->files.size(), 1);
  run.repeats = 2;
  run.layers.assign(4, 8);
  auto made = exportRun(Engine::TorchTitan, run, error);
  ASSERT_EQ(made->files.size(), 2);
  EXPECT_NE(made->files[0].text.find("\"PipelineScheduleMulti\""),
            std::string::npos);
  run.isV = true;
  made = exportRun(Engine::TorchTitan, run, error);
  EXPECT_NE(made->files[0].text.find("\"ZBVZeroBubble\""), std::string::npos);
}

/// A plan of the compiler as PyTorch's files.
TEST(EnginesTest, PlansBecomeFilesOfPyTorch) {
  PlanRequest request;
  request.compiler.model = ROTA_SOURCE_DIR "/models/examples/two-kinds.mlir";
  request.compiler.shard.meshText = "stage=2";
  request.compiler.shard.optimizer = "adamw";
  request.compiler.schedule.stages = 2;
  request.compiler.schedule.microbatches = 2;
  request.compiler.schedule.schedule = "1f1b";
  PlanAnswer answer;
  std::string error;
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  mlir::MLIRContext context(registry);
  ASSERT_EQ(makePlan(context, request, answer, error), kExitSuccess);
  EngineRun run = engineRunOf(request, answer);
  EXPECT_EQ(run.layers, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(run.timeline, "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  auto made = exportRun(Engine::Torch, run, error);
  ASSERT_TRUE(made) << error;
  EXPECT_EQ(made->files[1].text, run.timeline);
  // Between four ranks 'auto' gathers what this short sequence attends to.
  request.compiler.shard.exchange = mlir::rota::ContextExchange::Auto;
  for (auto [mesh, exchange] : {std::pair("stage=2,context=4", "gather"),
                                std::pair("stage=2,context=2", "auto")}) {
    request.compiler.shard.meshText = mesh;
    PlanAnswer divided;
    ASSERT_EQ(makePlan(context, request, divided, error), kExitSuccess);
    EXPECT_EQ(engineRunOf(request, divided).contextExchange, exchange);
  }
}

} // namespace
