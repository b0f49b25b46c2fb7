// SPDX-License-Identifier: Apache-2.0
//
// The families' own keys: what each changes in the model, and what is refused.
#include "ModelFixture.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class Families : public ModelFixture {
protected:
  /// A small configuration of the family, for sequences of 8 tokens.
  nlohmann::json small(const char *family) {
    auto config = smallLlama();
    config["model_type"] = family;
    return config;
  }

  /// Expects exactly one error, which says `message`.
  void refuse(const nlohmann::json &config, StringRef message) {
    std::string said = diagnose(config);
    EXPECT_TRUE(StringRef(said).contains(message))
        << "expected: " << message.str() << "\ngot: " << said;
    EXPECT_EQ(StringRef(said).count('\n'), 1u) << said;
  }

  std::vector<std::string> layerParams(const nlohmann::json &config) {
    auto built = build(config);
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    std::vector<std::string> names;
    if (failed(built))
      return names;
    auto model = Model::get(*built->module);
    for (ParamOp param : Model::params(model->kindOf(0))) {
      std::string name = param.getSymName().str();
      for (int64_t size : param.getTensorType().getShape())
        name += " " + std::to_string(size);
      names.push_back(name);
    }
    return names;
  }

  static bool has(const std::vector<std::string> &names, StringRef name) {
    return llvm::is_contained(names, name);
  }
};

constexpr StringLiteral narrow =
    "expected a window of at least the sequence length, 8, got 7; narrower "
    "attention windows are not supported";

TEST_F(Families, MistralHasAWindowInEveryLayer) {
  auto config = small("mistral");
  config["sliding_window"] = 7;
  refuse(config, ("'sliding_window': " + narrow).str());
  config["sliding_window"] = 8;
  EXPECT_TRUE(succeeded(build(config))) << diagnostics;
  EXPECT_TRUE(failed(build(config, {1, 9, {}})));
  config["sliding_window"] = nullptr;
  EXPECT_TRUE(succeeded(build(config, {1, 5000, {}}))) << diagnostics;
  // A file without the key has the window of the first version.
  config.erase("sliding_window");
  EXPECT_TRUE(succeeded(build(config, {1, 4096, {}}))) << diagnostics;
  EXPECT_TRUE(failed(build(config, {1, 4097, {}})));
}

TEST_F(Families, MistralIsOtherwiseALlama) {
  EXPECT_EQ(layerParams(small("mistral")), layerParams(small("llama")));
}

TEST_F(Families, QwenHasWindowsWhenAsked) {
  for (const char *family : {"qwen2", "qwen3"}) {
    auto config = small(family);
    config["sliding_window"] = 7;
    EXPECT_TRUE(succeeded(build(config))) << diagnostics;
    config["use_sliding_window"] = true;
    config["max_window_layers"] = 4; // all
    EXPECT_TRUE(succeeded(build(config))) << diagnostics;
    config["max_window_layers"] = 3;
    refuse(config, ("'sliding_window': " + narrow).str());
    config["sliding_window"] = 8;
    EXPECT_TRUE(succeeded(build(config))) << diagnostics;
    config["sliding_window"] = 7;
    config["layer_types"] = {"full_attention", "full_attention",
                             "full_attention", "full_attention"};
    EXPECT_TRUE(succeeded(build(config))) << diagnostics;
    config["layer_types"][0] = "sliding_attention";
    config.erase("max_window_layers");
    refuse(config, ("'sliding_window': " + narrow).str());
    config["use_sliding_window"] = false;
    refuse(config, "'layer_types': expected \"full_attention\" in every layer, "
                   "since 'use_sliding_window' is false");
  }
}

TEST_F(Families, LayerTypesAreOnePerLayer) {
  auto config = small("qwen3");
  config["layer_types"] = {"full_attention"};
  refuse(config, "'layer_types': expected \"full_attention\" or "
                 "\"sliding_attention\" for each of 4 layers, got");
  config["layer_types"] = {"full_attention", "full_attention",
                           "linear_attention", "full_attention"};
  refuse(config, "other kinds are not supported");
  config["max_window_layers"] = -1;
  config.erase("layer_types");
  refuse(config,
         "'max_window_layers': expected an integer of at least 0, got -1");
}

TEST_F(Families, Qwen2HasBiases) {
  auto names = layerParams(small("qwen2"));
  EXPECT_TRUE(has(names, "self_attn.q_proj.bias 32"));
  EXPECT_TRUE(has(names, "self_attn.k_proj.bias 16"));
  EXPECT_TRUE(has(names, "self_attn.v_proj.bias 16"));
  EXPECT_EQ(names.size(), 12u);
}

TEST_F(Families, Qwen3HasNormsOfHeadsOf128) {
  auto config = small("qwen3");
  auto names = layerParams(config);
  EXPECT_TRUE(has(names, "self_attn.q_norm.weight 8"));
  EXPECT_TRUE(has(names, "self_attn.k_norm.weight 8"));
  EXPECT_EQ(names.size(), 11u);
  config.erase("head_dim");
  EXPECT_TRUE(has(layerParams(config), "self_attn.q_norm.weight 128"));
  config["attention_bias"] = true;
  refuse(config, "'attention_bias': expected false, got true");
}

TEST_F(Families, Olmo2HasNormsOfOutputsAndOfWholeQueries) {
  auto config = small("olmo2");
  auto names = layerParams(config);
  EXPECT_TRUE(has(names, "self_attn.q_norm.weight 32"));
  EXPECT_TRUE(has(names, "self_attn.k_norm.weight 16"));
  EXPECT_TRUE(has(names, "post_feedforward_layernorm.weight 24"));
  EXPECT_FALSE(has(names, "input_layernorm.weight 24"));
  config["layer_types"] = {"sliding_attention"};
  refuse(config, "'layer_types': expected \"full_attention\" in every layer");
}

TEST_F(Families, ArchitecturesAreLanguageModels) {
  for (const char *family : {"mistral", "olmo2", "qwen2", "qwen3"}) {
    auto config = small(family);
    config["architectures"] = {"OtherForSequenceClassification"};
    refuse(config, "other heads are not supported");
    config["architectures"] = nullptr;
    config["hidden_act"] = "gelu";
    refuse(config, "'hidden_act': expected \"silu\", got \"gelu\"");
  }
}

} // namespace
