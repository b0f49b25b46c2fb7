// SPDX-License-Identifier: Apache-2.0
//
// Bad configurations and modules: each is refused with the key, the value and
// the rule.
#include "ModelFixture.h"
#include "models/NeutralKeys.h"

#include <fstream>
#include <functional>

using namespace mlir;
using namespace mlir::rota;

namespace {

class ConfigErrors : public ModelFixture {
protected:
  /// Expects that setting `key` to `value` in a small Llama is refused with
  /// `message`, and with nothing else.
  void refuse(const char *key, nlohmann::json value, StringRef message) {
    auto config = smallLlama();
    config[key] = std::move(value);
    std::string said = diagnose(config);
    EXPECT_TRUE(StringRef(said).contains(message))
        << "expected: " << message.str() << "\ngot: " << said;
    EXPECT_EQ(StringRef(said).count('\n'), 1u) << said;
  }
  void refuseScaling(nlohmann::json scaling, StringRef message) {
    refuse("rope_scaling", std::move(scaling), message);
  }
};

TEST_F(ConfigErrors, MissingKeys) {
  for (const char *key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "model_type"}) {
    auto config = smallLlama();
    config.erase(key);
    std::string said = diagnose(config);
    EXPECT_EQ(said, "0:0: '" + std::string(key) + "': the key is missing\n");
  }
}

TEST_F(ConfigErrors, Sizes) {
  StringRef rule = "expected an integer from 1 to 2147483647, got ";
  for (const char *key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_attention_heads",
        "num_key_value_heads", "head_dim"}) {
    std::string prefix = "'" + std::string(key) + "': " + rule.str();
    refuse(key, 0, prefix + "0");
    refuse(key, -3, prefix + "-3");
    refuse(key, 12.5, prefix + "12.5");
    refuse(key, "64", prefix + "\"64\"");
    refuse(key, true, prefix + "true");
    refuse(key, uint64_t(1) << 63, prefix + "9223372036854775808");
    refuse(key, nlohmann::json::array(), prefix + "[]");
  }
  refuse("num_hidden_layers", 100001,
         "expected an integer from 1 to 100000, got 100001");
}

TEST_F(ConfigErrors, HugeProducts) {
  auto config = smallLlama();
  config["vocab_size"] = 2147483647;
  config["hidden_size"] = 2147483644;
  EXPECT_TRUE(
      StringRef(diagnose(config))
          .contains("'vocab_size': expected vocab_size x hidden_size to "
                    "be at most 72057594037927936, got 2147483647 x "
                    "2147483644"));
  config["vocab_size"] = 8;
  config["hidden_size"] = 1 << 26;
  config["intermediate_size"] = 1 << 27;
  config["num_hidden_layers"] = 100000;
  EXPECT_TRUE(StringRef(diagnose(config))
                  .contains("'num_hidden_layers': expected num_hidden_layers x "
                            "the parameters of a layer to be at most"));
}

TEST_F(ConfigErrors, Heads) {
  refuse("num_key_value_heads", 3,
         "'num_key_value_heads': expected a divisor of 'num_attention_heads', "
         "got 3 and 4");
  refuse("head_dim", 7,
         "'head_dim': expected an even head size for rotary embedding, got 7");
  refuse("head_dim", 70000,
         "'head_dim': expected a head size of at most 65536, got 70000");
  auto config = smallLlama();
  config.erase("head_dim");
  config["num_attention_heads"] = 10;
  EXPECT_TRUE(StringRef(diagnose(config))
                  .contains("'num_attention_heads': expected a divisor of "
                            "'hidden_size', got 10 and 24"));
}

TEST_F(ConfigErrors, Numbers) {
  refuse("rms_norm_eps", -1e-5,
         "'rms_norm_eps': expected a number from 0 to 1, got -1e-05");
  refuse("rms_norm_eps", "1e-5", "expected a number from 0 to 1, got \"1e-5\"");
  refuse("initializer_range", 2,
         "'initializer_range': expected a number from 0 to 1, got 2");
  refuse("rope_theta", 0, "'rope_theta': expected a number above 0, got 0");
  refuse("tie_word_embeddings", 1,
         "'tie_word_embeddings': expected true or false, got 1");
  refuse(
      "torch_dtype", "float64",
      "'torch_dtype': expected \"float32\", \"bfloat16\" or \"float16\", got "
      "\"float64\"");
}

TEST_F(ConfigErrors, ChangesTheComputation) {
  StringRef tail = "; it changes the computation and is not supported";
  refuse("attention_bias", 1,
         "'attention_bias': expected true or false, got 1");
  refuse("attention_dropout", 0.1,
         "'attention_dropout': expected 0, got 0.1" + tail.str());
  refuse("pretraining_tp", 2, "'pretraining_tp': expected 1, got 2");
  refuse("partial_rotary_factor", 0.5,
         "'partial_rotary_factor': expected 1, got 0.5");
  refuse("hidden_act", "relu",
         "'hidden_act': expected one of \"silu\", \"swish\", \"gelu\", "
         "\"gelu_new\", \"gelu_pytorch_tanh\", got \"relu\"; other "
         "activations are not supported");
  refuse("hidden_act", 3, "'hidden_act': expected a string, got 3");
  refuse("layer_types", {"full_attention", "sliding_attention"},
         "'layer_types': expected \"full_attention\" in every layer");
  refuse("architectures", {"LlamaForSequenceClassification"},
         "'architectures': expected \"LlamaForCausalLM\"");
}

// A key that nothing reads and nothing knows may change the computation.
TEST_F(ConfigErrors, UnknownKeys) {
  refuse("sliding_window", 4096,
         "'sliding_window': unknown key of the family 'llama', with the value "
         "4096; '--allow-unknown-keys' ignores it");
  refuse("hiden_act", "relu",
         "with the value \"relu\" (did you mean 'hidden_act'?); "
         "'--allow-unknown-keys' ignores it");
  refuse("some_future_key", {{"a", 1}}, "with the value {\"a\":1};");
  refuse("text_config", {{"hidden_size", 24}}, "'text_config': unknown key");
  // A name with a dot is not the path of a key.
  refuse("rope_scaling.factor", 2, "'rope_scaling.factor': unknown key");
  refuse("rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"beta", 1}},
         "'rope_scaling.beta': unknown key");
  auto config = smallLlama();
  config["some_future_key"] = nullptr; // as transformers writes what is unset
  EXPECT_TRUE(succeeded(build(config))) << diagnostics;
}

TEST_F(ConfigErrors, UnknownKeysAreIgnoredWhenAllowed) {
  BuildOptions options{2, 8, {}};
  options.allowUnknownKeys = true;
  auto config = smallLlama();
  auto plain = build(config);
  config["sliding_window"] = 4096;
  auto built = build(config, options);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("'sliding_window': unknown key of the family "
                            "'llama' is ignored, with the value 4096\n"))
      << diagnostics;
  EXPECT_EQ(print(*built), print(*plain));
  // A known key with a value that is not supported stays an error.
  config["attention_dropout"] = 0.1;
  EXPECT_TRUE(failed(build(config, options)));
}

// The model is built whatever the method; readers of weights ask for it.
TEST_F(ConfigErrors, QuantizationIsThatOfTheWeights) {
  auto config = smallLlama();
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"weight_block_size", {128, 128}}};
  auto built = build(config);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  EXPECT_EQ(built->quantization, "fp8");
  config["quantization_config"]["weight_block_size"] = {64, 64};
  built = build(config);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  EXPECT_EQ(built->quantization, "fp8 with the 'weight_block_size' [64,64]");
  refuse("quantization_config", {{"bits", 4}},
         "'quantization_config.quant_method': the key is missing");
}

TEST_F(ConfigErrors, NeutralValuesPass) {
  auto config = smallLlama();
  config["attention_bias"] = false;
  config["attention_dropout"] = 0;
  config["pretraining_tp"] = 1;
  config["sliding_window"] = nullptr;
  config["quantization_config"] = nullptr;
  config["id2label"] = {{"0", "LABEL_0"}};
  config["hidden_act"] = "swish";
  config["num_nextn_predict_layers"] = 0;
  config["architectures"] = {"LlamaForCausalLM"};
  config["use_cache"] = true;
  config["bos_token_id"] = 1;
  EXPECT_TRUE(succeeded(build(config))) << diagnostics;
}

TEST_F(ConfigErrors, RopeScaling) {
  refuse("rope_scaling", 3,
         "'rope_scaling': expected an object or null, got 3");
  refuseScaling({{"rope_type", "longrope"}, {"factor", 4.0}},
                "'rope_scaling.rope_type': expected \"default\", \"dynamic\", "
                "\"linear\", \"llama3\", \"proportional\" or \"yarn\", got "
                "\"longrope\"; other kinds are not supported");
  refuseScaling({{"rope_type", "dynamic"}, {"factor", 4.0}},
                "'max_position_embeddings': the key is missing");
  refuseScaling(
      {{"rope_type", "linear"}, {"factor", 2}, {"partial_rotary_factor", 0.5}},
      "'rope_scaling.partial_rotary_factor': expected 1, or 'rope_type' "
      "\"proportional\", got 0.5");
  refuseScaling({{"rope_type", "proportional"}, {"partial_rotary_factor", 1.5}},
                "'rope_scaling.partial_rotary_factor': expected a number from "
                "0 to 1, got 1.5");
  refuseScaling(
      {{"rope_type", "linear"}, {"factor", 2}, {"attention_factor", 1}},
      "'rope_scaling.attention_factor': unknown key");
  refuseScaling({{"rope_type", "yarn"}, {"factor", 2}},
                "'rope_scaling.original_max_position_embeddings': the key is "
                "missing");
  refuseScaling({{"rope_type", "yarn"},
                 {"factor", 2},
                 {"original_max_position_embeddings", 64},
                 {"beta_slow", 33}},
                "'rope_scaling.beta_fast': expected at least "
                "'rope_scaling.beta_slow', got 32.0 and 33.0");
  refuseScaling({{"type", "longrope"}, {"factor", 4.0}},
                "'rope_scaling.type': expected");
  refuseScaling({{"rope_type", "linear"}},
                "'rope_scaling.factor': the key is missing");
  refuseScaling({{"rope_type", "linear"}, {"factor", 0.5}},
                "'rope_scaling.factor': expected a number of at least 1, got "
                "0.5");
  refuseScaling({{"rope_type", "linear"}, {"type", "llama3"}, {"factor", 2}},
                "'rope_scaling.type': expected the value of "
                "'rope_scaling.rope_type', \"linear\", got \"llama3\"");
  refuseScaling({{"rope_type", "llama3"},
                 {"factor", 8.0},
                 {"low_freq_factor", 4.0},
                 {"high_freq_factor", 4.0},
                 {"original_max_position_embeddings", 64}},
                "'rope_scaling.high_freq_factor': expected more than "
                "'rope_scaling.low_freq_factor'");
  refuseScaling({{"rope_type", "llama3"},
                 {"factor", 8.0},
                 {"low_freq_factor", 1.0},
                 {"high_freq_factor", 4.0}},
                "'rope_scaling.original_max_position_embeddings': the key is "
                "missing");
  refuse("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}},
         "'rope_theta': expected the value of 'rope_parameters.rope_theta'");
}

TEST_F(ConfigErrors, ModelTypeListsThoseThatAre) {
  refuse("model_type", "mamba",
         "'model_type': expected one of \"deepseek_v3\", ");
  refuse("model_type", "mamba", "\"llama\", ");
  refuse("model_type", "mamba", "\"simple\", got \"mamba\"");
  refuse("model_type", 7, "'model_type': expected a string, got 7");
}

TEST_F(ConfigErrors, MalformedJson) {
  auto said = [&](StringRef text) {
    EXPECT_TRUE(failed(buildText(text, "config.json")));
    return diagnostics;
  };
  EXPECT_TRUE(StringRef(said("{\n  \"a\": 1,\n  \"b\" 2\n}"))
                  .starts_with("3:7: syntax error"));
  EXPECT_TRUE(StringRef(said("{\"a\": 1")).starts_with("1:8: syntax error"));
  EXPECT_TRUE(StringRef(said("")).starts_with("1:1: syntax error"));
  EXPECT_EQ(said("[1]"), "1:1: expected an object, got an array\n");
  EXPECT_EQ(said("{\"a\": 1,\n \"a\": 2}"),
            "2:2: key 'a' stands twice in one object\n");
  EXPECT_TRUE(StringRef(said("{\"a\": \"\xff\"}")).contains("UTF-8"));
}

TEST_F(ConfigErrors, PlaceOfTheKey) {
  EXPECT_TRUE(failed(buildText("{\n \"model_type\": \"llama\",\n"
                               "  \"hidden_size\": -1,\n"
                               "  \"rope_scaling\": {\n"
                               "    \"rope_type\": \"longrope\" } }",
                               "config.json")));
  EXPECT_TRUE(StringRef(diagnostics).contains("3:3: 'hidden_size'"));
  EXPECT_TRUE(StringRef(diagnostics).contains("5:5: 'rope_scaling.rope_type'"));
}

TEST_F(ConfigErrors, Paths) {
  EXPECT_TRUE(failed(buildPath(folder + "/nowhere")));
  EXPECT_EQ(diagnostics, "0:0: no such file or folder\n");
  EXPECT_TRUE(failed(buildPath(folder)));
  EXPECT_TRUE(StringRef(diagnostics).contains("cannot read the file"));
  EXPECT_TRUE(failed(buildText("", "model.txt")));
  EXPECT_TRUE(StringRef(diagnostics).contains("expected a model folder"));
}

TEST_F(ConfigErrors, Microbatch) {
  EXPECT_TRUE(failed(build(smallLlama(), {0, 8, {}})));
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("expected sequences in a microbatch from 1 to"));
  EXPECT_TRUE(failed(build(smallLlama(), {2, -8, {}})));
  EXPECT_TRUE(
      StringRef(diagnostics).contains("expected a sequence length from 1 to"));
}

TEST_F(ConfigErrors, UserModules) {
  std::string path = ROTA_SOURCE_DIR "/models/examples/linear.mlir";
  EXPECT_TRUE(failed(buildPath(path, {3, 0, {}})));
  EXPECT_TRUE(
      StringRef(diagnostics)
          .contains("expected 3 sequences in a microbatch as asked for, "
                    "got 2"));
  EXPECT_TRUE(failed(buildPath(path, {2, 5, {}})));
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("expected 5 tokens in a sequence as asked for, got "
                            "4"));
  EXPECT_TRUE(failed(buildText("module {", "bad.mlir")));
  EXPECT_FALSE(diagnostics.empty());
  EXPECT_TRUE(failed(buildText("func.func @f() { return }", "empty.mlir")));
  EXPECT_TRUE(StringRef(diagnostics).contains("'rota.stack'"));
}

// A module has in it what only a configuration leaves open. Numbers stand in
// messages as users write them.
TEST_F(ConfigErrors, OptionsOfConfigurationsAreRefusedForModules) {
  std::string path = ROTA_SOURCE_DIR "/models/examples/experts.mlir";
  std::pair<std::function<void(BuildOptions &)>, std::string> cases[] = {
      {[](auto &o) { o.compute = ComputeType::BF16; },
       "'dtype' for a module, whose types are its own, got bf16"},
      {[](auto &o) { o.compute = ComputeType::F32; },
       "'dtype' for a module, whose types are its own, got f32"},
      {[](auto &o) { o.zLoss = 1e-4; },
       "z-loss for a module, whose loss is its own, got 1e-04"},
      {[](auto &o) { o.predictionLoss = 0.3; },
       "loss of multi-token prediction for a module, whose loss is its own, "
       "got 0.3"},
      {[](auto &o) { o.lossBlocks = 2; },
       "blocks of the loss for a module, which has its own shapes, got 2"},
      {[](auto &o) { o.experts.capacity = 1.25; },
       "'expert-capacity' for a module, whose experts are its own, got 1.25"},
      {[](auto &o) { o.experts.buffer = 1.5; },
       "'expert-buffer' for a module, whose experts are its own, got 1.5"},
      {[](auto &o) { o.routers.balance = 0.01; },
       "'load-balance-loss' for a module, whose experts are its own, got 0.01"},
      {[](auto &o) { o.routers.zLoss = 0.001; },
       "'router-z-loss' for a module, whose experts are its own, got 0.001"},
      {[](auto &o) { o.routers.biasRate = 2; },
       "'router-bias-rate' for a module, whose experts are its own, got 2"},
      {[](auto &o) { o.routers.balanceOver = LoadBalanceOver::Step; },
       "'load-balance-over' for a module, whose losses are its own, got step"}};
  for (const auto &[set, message] : cases) {
    BuildOptions options;
    set(options);
    EXPECT_TRUE(failed(buildPath(path, options)));
    EXPECT_EQ(diagnostics, "0:0: expected no " + message + "\n");
  }
  EXPECT_TRUE(succeeded(buildPath(path, {}))) << diagnostics;
}

} // namespace
