// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters of linear layers: their parameters, what is frozen, and
// targets that name none.
#include "FamilyFixture.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class AdaptersTest : public FamilyFixture {
protected:
  BuildOptions with(std::vector<std::string> targets) {
    BuildOptions options{2, 8, {}};
    options.adapters = {4, 8.0, std::move(targets)};
    return options;
  }

  /// The error of targets; empty: none.
  std::string mistake(const nlohmann::json &config,
                      std::vector<std::string> targets) {
    (void)build(config, with(std::move(targets)));
    return diagnostics;
  }
};

TEST_F(AdaptersTest, AddFactorsAndFreezeTheRest) {
  auto built = build(smallLlama(), with({"q_proj", "self_attn.o_proj"}));
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  auto model = Model::get(*built->module);
  std::vector<std::string> trained;
  built->module->walk([&](ParamOp param) {
    if (param.getFrozen())
      return;
    std::string text = param.getSymName().str();
    for (auto [size, axis] :
         llvm::zip(param.getTensorType().getShape(),
                   param.getAxes().getAsValueRange<StringAttr>()))
      text += " " + std::to_string(size) + " " + axis.str();
    trained.push_back(text);
  });
  EXPECT_EQ(trained,
            (std::vector<std::string>{
                "self_attn.q_proj.lora_A.weight 4 lora_rank 24 embed",
                "self_attn.q_proj.lora_B.weight 32 heads 4 lora_rank",
                "self_attn.o_proj.lora_A.weight 4 lora_rank 32 heads",
                "self_attn.o_proj.lora_B.weight 24 embed 4 lora_rank"}));
  auto a = cast<ParamOp>(SymbolTable::lookupSymbolIn(
      model->kinds().front(), "self_attn.o_proj.lora_A.weight"));
  auto init = cast<UniformAttr>(a.getInit());
  EXPECT_DOUBLE_EQ(init.getHigh().convertToDouble(), 1 / std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(init.getLow().convertToDouble(), -1 / std::sqrt(32.0));
}

TEST_F(AdaptersTest, ReachTheHeadAndLatentAttention) {
  EXPECT_EQ(mistake(smallLlama(), {"lm_head"}), "");
  auto config = small("deepseek_v3");
  for (const char *key : {"head_dim", "num_key_value_heads"})
    config.erase(key);
  config.update({{"n_routed_experts", 8},
                 {"num_experts_per_tok", 3},
                 {"moe_intermediate_size", 12},
                 {"n_group", 4},
                 {"topk_group", 2},
                 {"q_lora_rank", 10},
                 {"kv_lora_rank", 14},
                 {"qk_nope_head_dim", 6},
                 {"qk_rope_head_dim", 4},
                 {"v_head_dim", 5}});
  EXPECT_EQ(mistake(config, {"q_a_proj", "kv_b_proj"}), "");
}

TEST_F(AdaptersTest, RefuseOtherTargets) {
  EXPECT_EQ(mistake(smallLlama(), {"q_proj", "proj"}),
            "0:0: 'lora-targets': expected names of linear layers out of "
            "lm_head, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
            "down_proj, got 'proj'\n");
  EXPECT_EQ(mistake(smallLlama(), {"embed_tokens"}),
            "0:0: 'lora-targets': expected names of linear layers alone, got "
            "'embed_tokens', by which 'model.embed_tokens.weight' goes\n");
  // The projections of GPT-2 are [in, out], and its head is the embedding.
  for (std::string target : {"c_attn", "c_proj", "q_proj"})
    EXPECT_EQ(mistake(smallGPT2(), {target}),
              "0:0: 'lora-targets': expected a model with linear layers of "
              "[out, in], which adapters are for; this one has none for '" +
                  target + "'\n");
  auto config = small("qwen3_moe");
  config.update({{"num_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 12}});
  EXPECT_NE(mistake(config, {"gate_proj"}).find("experts.{expert}.gate_proj"),
            std::string::npos)
      << diagnostics;
  EXPECT_EQ(mistake(config, {"q_proj"}), "");
}

} // namespace
