// SPDX-License-Identifier: Apache-2.0
//
// The families' own keys: what each changes in the model, and what is refused.
#include "FamilyFixture.h"
#include "models/Family.h"

#include <fstream>

using namespace mlir;
using namespace mlir::rota;

namespace {

using Families = FamilyFixture;

TEST_F(Families, MistralHasAWindowInEveryLayer) {
  auto config = small("mistral");
  config["sliding_window"] = 7;
  EXPECT_EQ(windows(config), Windows({7, 7, 7, 7}));
  // A window of the whole sequence, which changes nothing.
  config["sliding_window"] = 8;
  EXPECT_EQ(windows(config), Windows(4));
  config["sliding_window"] = nullptr;
  EXPECT_EQ(windows(config), Windows(4));
  // A file without the key has the window of the first version.
  config.erase("sliding_window");
  EXPECT_EQ(windows(config, 4096), Windows(4));
  EXPECT_EQ(windows(config, 4097), Windows({4096, 4096, 4096, 4096}));
}

TEST_F(Families, MistralIsOtherwiseALlama) {
  EXPECT_EQ(layerParams(small("mistral")), layerParams(small("llama")));
}

TEST_F(Families, QwenHasWindowsWhenAsked) {
  for (const char *family : {"qwen2", "qwen3"}) {
    auto config = small(family);
    config["sliding_window"] = 7;
    EXPECT_EQ(windows(config), Windows(4));
    config["use_sliding_window"] = true;
    for (uint64_t all : {uint64_t(4), UINT64_MAX}) {
      config["max_window_layers"] = all;
      EXPECT_EQ(windows(config), Windows(4));
    }
    config["max_window_layers"] = 3;
    EXPECT_EQ(windows(config), Windows({{}, {}, {}, 7}));
    config["layer_types"] = {"sliding_attention", "full_attention",
                             "full_attention", "sliding_attention"};
    EXPECT_EQ(windows(config), Windows({7, {}, {}, 7}));
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
}

TEST_F(Families, HaveBiasesWhereTheirFilesAskForThem) {
  for (const char *family : {"llama", "qwen3", "qwen3_moe", "olmo2", "gemma2",
                             "gemma3_text", "gpt_oss"}) {
    auto config = small(family);
    for (bool isBiased : {false, true}) {
      config["attention_bias"] = isBiased;
      auto names = layerParams(config);
      for (const char *bias :
           {"self_attn.q_proj.bias 32", "self_attn.k_proj.bias 16",
            "self_attn.v_proj.bias 16", "self_attn.o_proj.bias 24"})
        EXPECT_EQ(has(names, bias), isBiased) << family << " " << bias;
    }
  }
  auto config = small("llama");
  config["mlp_bias"] = true;
  auto names = layerParams(config);
  EXPECT_TRUE(has(names, "mlp.gate_proj.bias 40"));
  EXPECT_TRUE(has(names, "mlp.up_proj.bias 40"));
  EXPECT_TRUE(has(names, "mlp.down_proj.bias 24"));
  EXPECT_FALSE(has(names, "self_attn.q_proj.bias 32"));
  for (const char *family : {"mistral", "mixtral", "qwen2"}) {
    config = small(family);
    config["attention_bias"] = true;
    refuse(config, "'attention_bias': expected false, got true");
  }
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

// As the classes of transformers have them.
TEST_F(Families, HaveTheirKeyHeadsWhereAFileLacksTheKey) {
  for (auto [family, heads] : {std::pair("llama", 32),
                               {"mistral", 8},
                               {"mixtral", 8},
                               {"qwen2", 32},
                               {"qwen3", 32},
                               {"qwen3_moe", 4},
                               {"gemma2", 4},
                               {"gemma3_text", 4},
                               {"gpt_oss", 8},
                               {"olmo2", 32}}) {
    auto config = small(family);
    config["num_attention_heads"] = 32;
    config["num_key_value_heads"] = nullptr;
    EXPECT_TRUE(has(layerParams(config), "self_attn.k_proj.weight 256 24"))
        << family;
    config.erase("num_key_value_heads");
    std::string size = std::to_string(8 * heads);
    EXPECT_TRUE(
        has(layerParams(config), "self_attn.k_proj.weight " + size + " 24"))
        << family;
  }
  auto config = small("mistral");
  config.erase("num_key_value_heads");
  refuse(config, "'num_key_value_heads': expected a divisor of "
                 "'num_attention_heads', got 8 and 4");
}

TEST_F(Families, GptOssStretchesByYarnWhereAFileHasNoRotarySettings) {
  auto config = small("gpt_oss");
  auto lacking = build(config);
  ASSERT_TRUE(succeeded(lacking)) << diagnostics;
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 32.0},
      {"beta_fast", 32.0},   {"beta_slow", 1.0},
      {"truncate", false},   {"original_max_position_embeddings", 4096}};
  auto given = build(config);
  ASSERT_TRUE(succeeded(given)) << diagnostics;
  EXPECT_EQ(print(*lacking), print(*given));
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500.0}};
  auto plain = build(config);
  ASSERT_TRUE(succeeded(plain)) << diagnostics;
  EXPECT_NE(print(*lacking), print(*plain));
}

TEST_F(Families, ArchitecturesAreLanguageModels) {
  for (const char *family : {"mistral", "olmo2", "qwen2", "qwen3"}) {
    auto config = small(family);
    config["architectures"] = {"OtherForSequenceClassification"};
    refuse(config, "other heads are not supported");
    config["architectures"] = nullptr;
  }
}

TEST_F(Families, ActivationIsThatOfTheFile) {
  auto config = smallLlama();
  for (auto [name, kind] : {std::pair("swish", ActivationKind::Silu),
                            {"gelu", ActivationKind::Gelu},
                            {"gelu_pytorch_tanh", ActivationKind::GeluTanh}}) {
    config["hidden_act"] = name;
    auto built = build(config);
    ASSERT_TRUE(succeeded(built)) << diagnostics;
    built->module->walk([&, kind = kind](ActivationOp op) {
      EXPECT_EQ(op.getKind(), kind) << name;
    });
  }
}

TEST_F(Families, GPT2HasJoinedProjectionsAndBiases) {
  EXPECT_EQ(
      layerParams(smallGPT2()),
      (std::vector<std::string>{
          "ln_1.weight 24", "ln_1.bias 24", "attn.c_attn.query.weight 24 24",
          "attn.c_attn.key.weight 24 24", "attn.c_attn.value.weight 24 24",
          "attn.c_attn.query.bias 24", "attn.c_attn.key.bias 24",
          "attn.c_attn.value.bias 24", "attn.c_proj.weight 24 24",
          "attn.c_proj.bias 24", "ln_2.weight 24", "ln_2.bias 24",
          "mlp.c_fc.weight 24 96", "mlp.c_fc.bias 96",
          "mlp.c_proj.weight 96 24", "mlp.c_proj.bias 24"}));
  auto built = build(smallGPT2());
  ASSERT_TRUE(succeeded(built));
  std::vector<std::string> joined; // names in checkpoints, columns
  built->module->walk([&](ParamOp param) {
    if (JoinedAttr place = param.getJoinedAttr())
      joined.push_back(Model::checkpointName(param) + " " +
                       std::to_string(place.getBegin()) + " of " +
                       std::to_string(place.getSize()));
  });
  std::string name = "transformer.h.{layer}.attn.c_attn.";
  EXPECT_EQ(joined, (std::vector<std::string>{
                        name + "weight 0 of 72", name + "weight 24 of 72",
                        name + "weight 48 of 72", name + "bias 0 of 72",
                        name + "bias 24 of 72", name + "bias 48 of 72"}));
  auto config = smallGPT2();
  config["n_inner"] = 40;
  EXPECT_TRUE(has(layerParams(config), "mlp.c_fc.weight 24 40"));
}

TEST_F(Families, GPT2IgnoresDropoutAndSaysSo) {
  auto config = smallGPT2();
  config["attn_pdrop"] = 0.1;
  EXPECT_TRUE(succeeded(build(config)));
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("'attn_pdrop': dropout of 0.1 is ignored"))
      << diagnostics;
  config["attn_pdrop"] = 0.0;
  EXPECT_TRUE(succeeded(build(config)));
  EXPECT_EQ(diagnostics, "");
}

TEST_F(Families, GPT2RefusesOtherAttention) {
  auto with = [](const char *key, nlohmann::json value) {
    auto config = smallGPT2();
    config[key] = std::move(value);
    return config;
  };
  refuse(with("n_positions", 7),
         "'n_positions': expected at least the sequence length, 8, got 7");
  refuse(with("n_head", 5),
         "'n_head': expected a divisor of 'n_embd', got 5 and 24");
  refuse(with("scale_attn_weights", false),
         "'scale_attn_weights': expected true; false is not supported");
  refuse(with("scale_attn_by_inverse_layer_idx", true),
         "'scale_attn_by_inverse_layer_idx': expected false");
  refuse(with("add_cross_attention", true), "'add_cross_attention'");
  refuse(with("activation_function", "relu"), "'activation_function': expected "
                                              "one of");
}

TEST_F(Families, Gemma2HasCapsAndWindowsInEverySecondLayer) {
  auto config = small("gemma2");
  config.erase("tie_word_embeddings");
  config["sliding_window"] = 7;
  EXPECT_EQ(windows(config), Windows({7, {}, 7, {}}));
  auto built = build(config);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  EXPECT_FALSE(built->module->lookupSymbol("lm_head.weight"));
  int64_t caps = 0;
  built->module->walk([&](math::TanhOp) { ++caps; });
  EXPECT_EQ(caps, 1); // the cap of the logits
  built->module->walk([&](AttentionOp op) {
    EXPECT_EQ(op.getSoftCap()->convertToDouble(), 50.0);
  });
  config["attn_logit_softcapping"] = nullptr;
  config["final_logit_softcapping"] = nullptr;
  built = build(config);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  built->module->walk([&](math::TanhOp) { ADD_FAILURE() << "a cap of null"; });
  built->module->walk([&](AttentionOp op) { EXPECT_FALSE(op.getSoftCap()); });
  config["attn_logit_softcapping"] = 0;
  refuse(config, "'attn_logit_softcapping': expected a number above 0 or null");
}

nlohmann::json withoutRotary(nlohmann::json config) {
  config.erase("rope_theta");
  config.erase("rope_scaling");
  return config;
}

TEST_F(Families, Gemma3HasRotarySettingsByKindOfLayer) {
  auto config = withoutRotary(small("gemma3_text"));
  config["sliding_window"] = 7;
  config["sliding_window_pattern"] = 3;
  EXPECT_EQ(windows(config), Windows({7, 7, {}, 7}));
  // The frequency of the second of four pairs is theta^(-1/4).
  using Thetas = std::vector<double>;
  EXPECT_EQ(thetas(config), Thetas({1e4, 1e4, 1e6, 1e4}));
  config["rope_theta"] = 500.0;
  config["rope_local_base_freq"] = 100.0;
  EXPECT_EQ(thetas(config), Thetas({100, 100, 500, 100}));
  config["rope_parameters"] = {
      {"full_attention", {{"rope_type", "default"}, {"rope_theta", 500.0}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 90.0}}}};
  refuse(config,
         "'rope_local_base_freq': expected the value of "
         "'rope_parameters.sliding_attention.rope_theta', 90.0, got 100.0");
  config.erase("rope_local_base_freq");
  EXPECT_EQ(thetas(config), Thetas({90, 90, 500, 90}));
  // Kinds keep their settings without windows.
  config["sliding_window"] = nullptr;
  EXPECT_EQ(windows(config), Windows(4));
  EXPECT_EQ(thetas(config), Thetas({90, 90, 500, 90}));
  config["rope_parameters"]["rope_theta"] = 1000.0;
  refuse(config, "'rope_parameters.rope_theta': unknown key of the family "
                 "'gemma3_text', with the value 1000.0");
}

TEST_F(Families, Gemma3RefusesACapThatTransformersIgnores) {
  auto config = small("gemma3_text");
  config["attn_logit_softcapping"] = 50.0;
  refuse(config, "'attn_logit_softcapping': expected null; scores have no cap "
                 "in Gemma 3, got 50.0");
}

// Each file has, by the version of transformers, all that its class writes:
// `to_json_string(use_diff=False)`.
TEST_F(Families, ReadWhatTransformersWrites) {
  int64_t files = 0;
  for (const Family *family : allFamilies()) {
    std::ifstream file(ROTA_SOURCE_DIR "/test/models/Inputs/" +
                       family->modelType.str() + ".json");
    if (family->languageModel.empty()) // Rota's own
      continue;
    ++files;
    auto versions = nlohmann::json::parse(file, nullptr, false);
    ASSERT_TRUE(versions.is_object()) << family->modelType.str();
    EXPECT_TRUE(versions.contains("5.23.0"));
    for (const auto &[version, config] : versions.items())
      EXPECT_TRUE(succeeded(build(config))) << family->modelType.str() << " of "
                                            << version << ": " << diagnostics;
  }
  EXPECT_EQ(files, 12);
}

TEST_F(Families, KeysWithTwoSpellingsAgree) {
  auto config = small("qwen3_moe");
  config["moe_intermediate_size"] = 12;
  config["num_experts_per_tok"] = 2;
  config["num_experts"] = 4;
  auto older = build(config);
  ASSERT_TRUE(succeeded(older)) << diagnostics;
  config["num_local_experts"] = 5;
  refuse(config, "'num_local_experts': expected the value of 'num_experts', 4, "
                 "got 5");
  config.erase("num_experts");
  config["num_local_experts"] = 4;
  auto newer = build(config);
  ASSERT_TRUE(succeeded(newer)) << diagnostics;
  EXPECT_EQ(print(*newer), print(*older));
}

} // namespace
