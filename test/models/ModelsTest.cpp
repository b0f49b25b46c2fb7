// SPDX-License-Identifier: Apache-2.0
//
// Results of builders: parameter counts, sizes of the IR, names, types, rotary
// frequencies, patterns, and the examples.
#include "ModelFixture.h"
#include "models/ModelBuilder.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

namespace {

class Models : public ModelFixture {
protected:
  int64_t parameterCount(StringRef name,
                         std::optional<double> predictionLoss = {}) {
    BuildOptions options{2, 8, {}};
    options.predictionLoss = predictionLoss;
    auto built =
        buildPath(ROTA_SOURCE_DIR "/models/configs/" + name.str(), options);
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    if (failed(built))
      return 0;
    auto model = Model::get(*built->module);
    EXPECT_TRUE(succeeded(model));
    return model->parameterCount();
  }

  int64_t opCount(const BuiltModel &model) {
    int64_t count = 0;
    const_cast<BuiltModel &>(model).module->walk([&](Operation *) { ++count; });
    return count;
  }

  /// The rotary table's frequencies in the built model.
  SmallVector<double> frequencies(const nlohmann::json &config) {
    auto built = build(config);
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    SmallVector<double> found;
    built->module->walk([&](RotaryTableOp table) {
      found.assign(table.getFrequencies().begin(),
                   table.getFrequencies().end());
    });
    return found;
  }
};

// The published counts of the models' cards; tied parameters count once.
TEST_F(Models, ParameterCountsArePublishedOnes) {
  EXPECT_EQ(parameterCount("llama-2-7b"), 6738415616);
  EXPECT_EQ(parameterCount("llama-3.1-8b"), 8030261248);
  EXPECT_EQ(parameterCount("llama-3.1-70b"), 70553706496);
  EXPECT_EQ(parameterCount("llama-3.1-405b"), 405853388800);
  // With the layer of multi-token prediction and without.
  EXPECT_EQ(parameterCount("deepseek-v3"), 682636487424);
  EXPECT_EQ(parameterCount("deepseek-v3", 0), 671026419200);
  EXPECT_EQ(parameterCount("gemma-2-9b"), 9241705984);
  EXPECT_EQ(parameterCount("gemma-3-1b"), 999885952);
  EXPECT_EQ(parameterCount("gemma-3-4b"), 3880263168); // the text model alone
  EXPECT_EQ(parameterCount("gpt-oss-20b"), 20914757184);
  EXPECT_EQ(parameterCount("gpt2"), 124439808);
  EXPECT_EQ(parameterCount("mistral-7b"), 7241732096);
  EXPECT_EQ(parameterCount("mixtral-8x7b"), 46702792704);
  EXPECT_EQ(parameterCount("olmo-2-7b"), 7298617344);
  EXPECT_EQ(parameterCount("qwen2.5-7b"), 7615616512);
  EXPECT_EQ(parameterCount("qwen3-30b-a3b"), 30532122624);
  EXPECT_EQ(parameterCount("qwen3-8b"), 8190735360);
  EXPECT_EQ(parameterCount("110m"), 109529856);
  EXPECT_EQ(parameterCount("tiny"),
            8 * (4 * 192 * 192 + 3 * 192 * 512 + 384) + 2 * 256 * 192 + 192);
  EXPECT_EQ(parameterCount("tiny-moe"),
            8 * (4 * 192 * 192 + 8 * 3 * 192 * 256 + 8 * 192 + 384) +
                2 * 256 * 192 + 192);
  EXPECT_EQ(parameterCount("simple"), 8 * 28 * 28);
}

TEST_F(Models, SizeOfIRDoesNotDependOnLayers) {
  auto config = shipped("110m");
  auto few = build(config);
  config["num_hidden_layers"] = 126;
  auto many = build(config);
  ASSERT_TRUE(succeeded(few) && succeeded(many));
  EXPECT_EQ(opCount(*few), opCount(*many));
  EXPECT_EQ(print(*few).size() + 1, print(*many).size()); // "12" and "126"
}

TEST_F(Models, ParametersHaveHubNames) {
  auto built = build(smallLlama());
  ASSERT_TRUE(succeeded(built));
  auto model = Model::get(*built->module);
  std::vector<std::string> names;
  for (ParamOp param : model->globalParams())
    names.push_back(Model::checkpointName(param));
  for (ParamOp param : Model::params(model->kindOf(0)))
    names.push_back(Model::checkpointName(param));
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "model.embed_tokens.weight", "model.norm.weight",
                "lm_head.weight", "model.layers.{layer}.input_layernorm.weight",
                "model.layers.{layer}.self_attn.q_proj.weight",
                "model.layers.{layer}.self_attn.k_proj.weight",
                "model.layers.{layer}.self_attn.v_proj.weight",
                "model.layers.{layer}.self_attn.o_proj.weight",
                "model.layers.{layer}.post_attention_layernorm.weight",
                "model.layers.{layer}.mlp.gate_proj.weight",
                "model.layers.{layer}.mlp.up_proj.weight",
                "model.layers.{layer}.mlp.down_proj.weight"}));
}

TEST_F(Models, TiedHeadIsTheEmbeddingTable) {
  auto config = smallLlama();
  config["tie_word_embeddings"] = true;
  auto built = build(config);
  ASSERT_TRUE(succeeded(built));
  auto model = Model::get(*built->module);
  EXPECT_FALSE(built->module->lookupSymbol("lm_head.weight"));
  auto used = Model::usedParams(model->loss);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].getSymName(), "model.embed_tokens.weight");
}

// The result of each GEMM and the operands of attention have names.
TEST_F(Models, ValuesAreNamedForRemat) {
  auto built = build(smallLlama());
  ASSERT_TRUE(succeeded(built));
  std::vector<std::string> names;
  built->module->walk([&](NameOp op) { names.push_back(op.getName().str()); });
  EXPECT_EQ(names, (std::vector<std::string>{
                       "decoder_layer_input", "query_proj", "key_proj",
                       "value_proj", "context", "out_proj", "attention_out",
                       "mlpwi_0", "mlpwi_1", "mlpwo", "logits"}));
}

TEST_F(Models, ComputeTypeComesFromOptionThenConfiguration) {
  auto config = smallLlama();
  auto elementOf = [&](const BuildOptions &options) {
    auto built = build(config, options);
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    return Model::get(*built->module)->activationType().getElementType();
  };
  EXPECT_TRUE(elementOf({2, 8, {}}).isF32());
  EXPECT_TRUE(elementOf({2, 8, ComputeType::BF16}).isBF16());
  config["torch_dtype"] = "bfloat16";
  EXPECT_TRUE(elementOf({2, 8, {}}).isBF16());
  EXPECT_TRUE(elementOf({2, 8, ComputeType::F32}).isF32());
  config.erase("torch_dtype");
  config["dtype"] = "float16"; // exact in f32
  EXPECT_TRUE(elementOf({2, 8, {}}).isF32());
}

// In bf16 the gains of norms, the softmax's logsumexp and the loss stay f32.
TEST_F(Models, NarrowModelKeepsWideParts) {
  auto built = build(smallLlama(), {2, 8, ComputeType::BF16});
  ASSERT_TRUE(succeeded(built));
  built->module->walk([&](ReadOp read) {
    bool isGain = read.getType().getRank() == 1;
    EXPECT_EQ(read.getType().getElementType().isF32(), isGain);
  });
  built->module->walk([&](ParamOp param) {
    EXPECT_TRUE(param.getTensorType().getElementType().isF32());
  });
  auto model = Model::get(*built->module);
  EXPECT_TRUE(cast<RankedTensorType>(model->loss.getResultTypes()[0])
                  .getElementType()
                  .isF32());
}

TEST_F(Models, BothSpellingsOfRotaryParametersAgree) {
  auto older = smallLlama();
  older["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  auto newer = smallLlama();
  newer.erase("rope_theta");
  newer.erase("torch_dtype");
  newer["dtype"] = "float32";
  newer["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500.0}};
  auto first = build(older);
  ASSERT_TRUE(succeeded(first)) << diagnostics;
  auto second = build(newer);
  ASSERT_TRUE(succeeded(second)) << diagnostics;
  EXPECT_EQ(print(*first), print(*second));
}

TEST_F(Models, RotaryFrequenciesDefaultAndLinear) {
  auto config = smallLlama();
  auto plain = frequencies(config);
  ASSERT_EQ(plain.size(), 4u);
  for (int i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(plain[i], std::pow(500.0, -i / 4.0));
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  auto scaled = frequencies(config);
  for (int i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4);
}

// Wavelengths 6.3, 29.7, 140.5, 664.4 with an original context of 64: the first
// is kept, the second between the bands, the others divided.
TEST_F(Models, RotaryFrequenciesLlama3) {
  auto config = smallLlama();
  auto plain = frequencies(config);
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 64}};
  auto scaled = frequencies(config);
  EXPECT_EQ(scaled[0], plain[0]);
  double smooth = (64 * plain[1] / (2 * M_PI) - 1) / 3;
  EXPECT_DOUBLE_EQ(scaled[1], (1 - smooth) * plain[1] / 8 + smooth * plain[1]);
  EXPECT_DOUBLE_EQ(scaled[2], plain[2] / 8);
  EXPECT_DOUBLE_EQ(scaled[3], plain[3] / 8);
}

// The context that the model was made for is the original one by itself.
TEST_F(Models, RotaryFrequenciesOfTheModelsContext) {
  for (const char *kind : {"llama3", "yarn"}) {
    auto config = smallLlama();
    auto &scaling = config["rope_scaling"];
    scaling = {{"rope_type", kind}, {"factor", 8.0}};
    if (kind == std::string("llama3"))
      scaling.update({{"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}});
    scaling["original_max_position_embeddings"] = 64;
    auto said = frequencies(config);
    scaling.erase("original_max_position_embeddings");
    config["max_position_embeddings"] = 64;
    EXPECT_EQ(frequencies(config), said) << kind;
    config["max_position_embeddings"] = 512;
    EXPECT_NE(frequencies(config), said) << kind;
  }
}

// Sequences have 8 tokens, twice the model's context or half of it.
TEST_F(Models, RotaryFrequenciesDynamic) {
  auto config = smallLlama();
  auto plain = frequencies(config);
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 4.0}};
  config["max_position_embeddings"] = 16;
  EXPECT_EQ(frequencies(config), plain);
  config["max_position_embeddings"] = 4;
  auto scaled = frequencies(config);
  EXPECT_EQ(scaled[0], plain[0]);
  for (int pair = 1; pair < 4; ++pair)
    EXPECT_DOUBLE_EQ(scaled[pair], plain[pair] / std::pow(5.0, pair / 3.0));
}

// transformers has frequencies of the whole head, of which the first
// pairs turn.
TEST_F(Models, RotaryFrequenciesProportional) {
  auto config = smallLlama();
  auto plain = frequencies(config);
  config["rope_scaling"] = {{"rope_type", "proportional"},
                            {"partial_rotary_factor", 0.7}};
  EXPECT_EQ(frequencies(config),
            SmallVector<double>({plain[0], plain[1], 0.0, 0.0}));
  config["rope_scaling"]["factor"] = 4.0;
  EXPECT_EQ(frequencies(config),
            SmallVector<double>({plain[0] / 4, plain[1] / 4, 0.0, 0.0}));
  config["rope_scaling"].erase("partial_rotary_factor");
  EXPECT_EQ(frequencies(config),
            SmallVector<double>(
                {plain[0] / 4, plain[1] / 4, plain[2] / 4, plain[3] / 4}));
}

// Values of transformers 5.23, computed in f64.
TEST_F(Models, RotaryFrequenciesYarn) {
  struct Case {
    nlohmann::json settings;
    double second, third, last, scale;
  } cases[] = {{{{"factor", 8.0}},
                0.11895426713706346,
                0.005590169943749474,
                0.0011821770112539697,
                1.2079441541679836},
               {{{"factor", 8.0},
                 {"truncate", false},
                 {"beta_fast", 8},
                 {"beta_slow", 2}},
                0.03633926763612826,
                0.005590169943749474,
                0.0011821770112539697,
                1.2079441541679836},
               {{{"factor", 40.0}, {"mscale", 0.7}, {"mscale_all_dim", 0.5}},
                0.10838055450265782,
                0.001118033988749895,
                0.000236435402250794,
                1.0622887960785043},
               {{{"factor", 8.0}, {"attention_factor", 1.5}},
                0.11895426713706346,
                0.005590169943749474,
                0.0011821770112539697,
                1.5}};
  for (Case &test : cases) {
    auto config = smallLlama();
    test.settings["rope_type"] = "yarn";
    test.settings["original_max_position_embeddings"] = 64;
    config["rope_scaling"] = test.settings;
    auto found = frequencies(config);
    EXPECT_NEAR(found[0], 1, 1e-15);
    EXPECT_NEAR(found[1], test.second, 1e-15);
    EXPECT_NEAR(found[2], test.third, 1e-15);
    EXPECT_NEAR(found[3], test.last, 1e-15);
    auto built = build(config);
    ASSERT_TRUE(succeeded(built));
    built->module->walk([&](RotaryTableOp table) {
      EXPECT_NEAR(table.getScale().convertToDouble(), test.scale, 1e-15);
    });
  }
}

TEST_F(Models, SimpleTakesNumbers) {
  auto built = build(
      {{"model_type", "simple"}, {"hidden_size", 28}, {"num_hidden_layers", 8}},
      {2, 128, ComputeType::BF16});
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  auto model = Model::get(*built->module);
  auto data = RankedTensorType::get({2, 128, 28}, Float32Type::get(&context));
  EXPECT_EQ(model->embed.getArgumentTypes()[0], data);
  EXPECT_EQ(model->loss.getArgumentTypes()[1], data);
  EXPECT_TRUE(model->activationType().getElementType().isBF16());
}

TEST_F(Models, SimpleHasAnAuxiliaryLossWhenAsked) {
  nlohmann::json config = {
      {"model_type", "simple"}, {"hidden_size", 28}, {"num_hidden_layers", 8}};
  for (double coefficient : {0.0, 0.25}) {
    config["auxiliary_loss_coefficient"] = coefficient;
    auto built = build(config, {2, 128, ComputeType::BF16});
    ASSERT_TRUE(succeeded(built)) << diagnostics;
    auto losses = Model::get(*built->module)->auxiliaryLosses();
    ASSERT_TRUE(succeeded(losses));
    ASSERT_EQ(losses->size(), coefficient == 0 ? 0u : 1u);
    if (losses->empty())
      continue;
    EXPECT_EQ(losses->front().name, "activation");
    EXPECT_EQ(losses->front().coefficient, 0.25);
    EXPECT_EQ(losses->front().weight, 8.0 * 2 * 128 * 28);
  }
}

TEST_F(Models, PatternIsTheShortestThatRepeats) {
  struct Layers : ModelBuilder {
    using ModelBuilder::ModelBuilder;
    void build() override {}
  };
  auto patternOf = [&](ArrayRef<StringRef> kinds) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    Layers builder(*module, {1, 1, ComputeType::F32, 0, 1});
    builder.beginLayers("layers", kinds);
    for (StringRef kind : {"a", "b"})
      builder.beginKind(kind);
    builder.endLayers();
    StackOp stack = *module->getOps<StackOp>().begin();
    EXPECT_EQ(stack.getLayers(), kinds.size());
    EXPECT_EQ(llvm::range_size(stack.getBody().getOps<LayerOp>()), 2u);
    std::string names;
    for (auto kind : stack.getPattern().getAsRange<FlatSymbolRefAttr>())
      names += kind.getValue();
    return names;
  };
  EXPECT_EQ(patternOf({"a", "b"}), "ab");
  EXPECT_EQ(patternOf({"a", "a", "b", "a", "a"}), "aab");
  EXPECT_EQ(patternOf({"a", "b", "b", "b"}), "abbb");
  EXPECT_EQ(patternOf({"b", "b", "b"}), "b");
}

TEST_F(Models, FolderHasWeightsBesideIt) {
  auto without = build(smallLlama());
  ASSERT_TRUE(succeeded(without));
  EXPECT_EQ(without->weights, "");
  EXPECT_TRUE(failed(buildText("", "model.safetensors")));
  auto with = buildPath(folder);
  ASSERT_TRUE(succeeded(with)) << diagnostics;
  EXPECT_EQ(with->weights, folder + "/model.safetensors");
  EXPECT_TRUE(failed(buildText("", "model.safetensors.index.json")));
  auto sharded = buildPath(folder);
  ASSERT_TRUE(succeeded(sharded)) << diagnostics;
  EXPECT_EQ(sharded->weights, folder + "/model.safetensors.index.json");
}

TEST_F(Models, ExamplesLoad) {
  auto linear = buildPath(ROTA_SOURCE_DIR "/models/examples/linear.mlir", {});
  ASSERT_TRUE(succeeded(linear)) << diagnostics;
  EXPECT_EQ(linear->sequences, 2);
  EXPECT_EQ(linear->sequenceLength, 4);
  auto kinds = buildPath(ROTA_SOURCE_DIR "/models/examples/two-kinds.mlir", {});
  ASSERT_TRUE(succeeded(kinds)) << diagnostics;
  EXPECT_EQ(kinds->sequenceLength, 32);
  EXPECT_EQ(kinds->name, "two-kinds");
  auto model = Model::get(*kinds->module);
  EXPECT_EQ(model->kinds().size(), 2u);
  EXPECT_EQ(model->parameterCount(),
            256 * 64 + 64 + 4 * (64 + 192 * 64) + 4 * (64 + 3 * 160 * 64));
}

} // namespace
