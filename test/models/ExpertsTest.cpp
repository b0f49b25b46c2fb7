// SPDX-License-Identifier: Apache-2.0
//
// Families with mixtures of experts: their parameters, which layers have
// experts, and the room for the experts' rows.
#include "FamilyFixture.h"

#include "ir/rota/experts/Experts.h"

#include <functional>
#include <set>

using namespace mlir;
using namespace mlir::rota;

namespace {

class Experts : public FamilyFixture {
protected:
  /// Four experts of 2 choices, sequences of 8 tokens.
  nlohmann::json mixtral() {
    auto config = small("mixtral");
    config["num_local_experts"] = 4;
    config["num_experts_per_tok"] = 2;
    return config;
  }

  nlohmann::json qwen() {
    auto config = small("qwen3_moe");
    config["num_experts"] = 4;
    config["num_experts_per_tok"] = 2;
    config["moe_intermediate_size"] = 12;
    return config;
  }

  nlohmann::json deepSeek() {
    auto config = small("deepseek_v3");
    for (const char *key : {"head_dim", "num_key_value_heads"})
      config.erase(key);
    config["n_routed_experts"] = 8;
    config["num_experts_per_tok"] = 3;
    config["moe_intermediate_size"] = 12;
    config["n_group"] = 4;
    config["topk_group"] = 2;
    config["q_lora_rank"] = 10;
    config["kv_lora_rank"] = 14;
    config["qk_nope_head_dim"] = 6;
    config["qk_rope_head_dim"] = 4;
    config["v_head_dim"] = 5;
    return config;
  }

  std::vector<bool> sparse(const nlohmann::json &config) {
    return ofLayers<bool>(config, 8, [](LayerOp kind) {
      bool routes = false;
      kind.walk([&](RouteOp) { routes = true; });
      return routes;
    });
  }

  /// Rows, blocks and capacity of the first layer's experts; 0: no capacity.
  using Room = std::array<int64_t, 3>;
  Room room(const nlohmann::json &config, const ExpertRoom &given) {
    BuildOptions options{1, 8, {}};
    options.experts = given;
    Room found = {};
    auto built = build(config, options);
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    if (succeeded(built))
      built->module->walk([&](ExpertPlacesOp op) {
        found = {int64_t(op.getRows()), int64_t(op.getBlocks()),
                 int64_t(op.getCapacity().value_or(0))};
      });
    return found;
  }
};

/// The number of dropped tokens is known where there is a capacity.
TEST_F(Experts, TheirLoadIsObserved) {
  for (double capacity : {0.0, 1.5})
    for (const auto &config : {mixtral(), qwen(), deepSeek()}) {
      BuildOptions options{1, 8, {}};
      options.experts.capacity = capacity;
      auto built = build(config, options);
      ASSERT_TRUE(succeeded(built)) << diagnostics;
      int observed = 0, routed = 0;
      built->module->walk([&](ExpertPlacesOp op) {
        ++routed;
        for (Operation *user : op.getCounts().getUsers())
          if (auto observe = dyn_cast<ObserveOp>(user)) {
            ++observed;
            EXPECT_EQ(observe.getName(), "expert_load");
            auto choices = cast<RankedTensorType>(op.getExperts().getType());
            uint64_t each = choices.getDimSize(1) * choices.getDimSize(2);
            EXPECT_EQ(observe.getEach().value_or(0), capacity > 0 ? each : 0u);
          }
      });
      EXPECT_GT(routed, 0);
      EXPECT_EQ(observed, routed);
    }
}

/// Over a step, the load balance of a layer reads the mean of its load.
TEST_F(Experts, TheirLoadIsBalancedOverAMicrobatchOrAStep) {
  for (LoadBalanceOver over :
       {LoadBalanceOver::Microbatch, LoadBalanceOver::Step})
    for (const auto &config : {mixtral(), qwen(), deepSeek()}) {
      BuildOptions options{2, 8, {}};
      options.routers.balance = 0.01;
      options.routers.balanceOver = over;
      auto built = build(config, options);
      ASSERT_TRUE(succeeded(built)) << diagnostics;
      int losses = 0, means = 0;
      built->module->walk([&](AuxiliaryLossOp) { ++losses; });
      built->module->walk([&](ObservedMeanOp op) {
        ++means;
        EXPECT_EQ(op.getName(), "expert_load");
      });
      EXPECT_GT(losses, 0);
      EXPECT_EQ(means, over == LoadBalanceOver::Step ? losses : 0);
    }
}

TEST_F(Experts, ARateOfBiasesNeedsBiases) {
  BuildOptions options{1, 8, {}};
  options.routers.biasRate = 0.001;
  auto built = build(deepSeek(), options);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  built->module->walk([&](RouteOp op) {
    ASSERT_TRUE(op.getBiasRate());
    EXPECT_EQ(op.getBiasRate()->convertToDouble(), 0.001);
  });
  EXPECT_TRUE(failed(build(mixtral(), options)));
  EXPECT_NE(diagnostics.find("'model_type': expected no 'router-bias-rate' for "
                             "a model whose routers have no bias of choices, "
                             "as those of 'deepseek_v3' have, got 0.001\n"),
            std::string::npos)
      << diagnostics;
}

TEST_F(Experts, TheirOptionsNeedExperts) {
  auto dense = qwen();
  dense["mlp_only_layers"] = {0, 1, 2, 3, 4, 5, 6, 7};
  std::tuple<const char *, std::function<void(BuildOptions &)>, const char *>
      cases[] = {
          {"expert-capacity", [](auto &o) { o.experts.capacity = 1.5; }, "1.5"},
          {"expert-buffer", [](auto &o) { o.experts.buffer = 2; }, "2"},
          {"expert-pieces", [](auto &o) { o.experts.pieces = 2; }, "2"},
          {"load-balance-loss", [](auto &o) { o.routers.balance = 0.1; },
           "0.1"},
          {"router-z-loss", [](auto &o) { o.routers.zLoss = 1e-4; }, "1e-04"},
          {"router-bias-rate", [](auto &o) { o.routers.biasRate = 1e-3; },
           "0.001"}};
  for (const auto &[name, set, value] : cases) {
    BuildOptions options{1, 8, {}};
    set(options);
    EXPECT_TRUE(failed(build(dense, options)));
    EXPECT_NE(
        diagnostics.find("'model_type': expected no '" + std::string(name) +
                         "' for a model without experts, got " + value + "\n"),
        std::string::npos)
        << diagnostics;
  }
}

TEST_F(Experts, ABalanceOverTheStepNeedsALossOfBalance) {
  BuildOptions options{1, 8, {}};
  options.routers.balanceOver = LoadBalanceOver::Step;
  options.routers.balance = 0.0;
  EXPECT_TRUE(failed(build(mixtral(), options)));
  EXPECT_NE(diagnostics.find("expected a model with a load balance loss"),
            std::string::npos)
      << diagnostics;
  options.routers.balance = 0.1;
  EXPECT_TRUE(succeeded(build(mixtral(), options))) << diagnostics;
}

TEST_F(Experts, MixtralHasThemInEveryLayer) {
  auto names = layerParams(mixtral());
  EXPECT_TRUE(has(names, "block_sparse_moe.gate.weight 4 24"));
  EXPECT_TRUE(
      has(names, "block_sparse_moe.experts.{expert}.w1.weight 4 40 24"));
  EXPECT_TRUE(
      has(names, "block_sparse_moe.experts.{expert}.w2.weight 4 24 40"));
  EXPECT_TRUE(
      has(names, "block_sparse_moe.experts.{expert}.w3.weight 4 40 24"));
  EXPECT_EQ(sparse(mixtral()), std::vector<bool>(4, true));
  EXPECT_EQ(windows(mixtral()), Windows(4));
  auto config = mixtral();
  config["sliding_window"] = 5;
  EXPECT_EQ(windows(config), Windows({5, 5, 5, 5}));
}

TEST_F(Experts, QwenHasThemInTheLayersThatItNames) {
  auto config = qwen();
  EXPECT_EQ(sparse(config), std::vector<bool>(4, true));
  config["mlp_only_layers"] = {1};
  EXPECT_EQ(sparse(config), std::vector<bool>({true, false, true, true}));
  EXPECT_TRUE(has(layerParams(config, 1), "mlp.gate_proj.weight 40 24"));
  EXPECT_TRUE(has(layerParams(config, 2),
                  "mlp.experts.{expert}.gate_proj.weight 4 12 24"));
  config["decoder_sparse_step"] = 2;
  EXPECT_EQ(sparse(config), std::vector<bool>({false, false, false, true}));
  config["mlp_only_layers"] = {-1};
  refuse(config, "'mlp_only_layers': expected an array of numbers of layers");
}

TEST_F(Experts, DeepSeekHasThemBehindTheFirstLayers) {
  auto config = deepSeek();
  EXPECT_EQ(sparse(config), std::vector<bool>({false, false, false, true}));
  config["first_k_dense_replace"] = 0;
  EXPECT_EQ(sparse(config), std::vector<bool>(4, true));
  auto names = layerParams(config);
  EXPECT_TRUE(has(names, "mlp.gate.e_score_correction_bias 8"));
  EXPECT_TRUE(has(names, "mlp.shared_experts.up_proj.weight 12 24"));
  EXPECT_TRUE(has(names, "self_attn.q_b_proj.weight 40 10"));
  EXPECT_TRUE(has(names, "self_attn.kv_a_proj_with_mqa.weight 18 24"));
  EXPECT_TRUE(has(names, "self_attn.kv_b_proj.weight 44 14"));
  EXPECT_TRUE(has(names, "self_attn.o_proj.weight 24 20"));
  config["q_lora_rank"] = nullptr;
  EXPECT_TRUE(has(layerParams(config), "self_attn.q_proj.weight 40 24"));
  config["first_k_dense_replace"] = -1;
  refuse(config, "'first_k_dense_replace': expected an integer of at least 0");
}

TEST_F(Experts, DeepSeekRefusesOtherRouters) {
  auto with = [&](const char *key, nlohmann::json value) {
    auto config = deepSeek();
    config[key] = std::move(value);
    return config;
  };
  refuse(
      with("scoring_func", "softmax"),
      "'scoring_func': expected \"sigmoid\"; other routers are not supported");
  refuse(with("topk_method", "greedy"), "'topk_method': expected \"noaux_tc\"");
  refuse(with("moe_layer_freq", 2), "'moe_layer_freq': expected 1, got 2");
  refuse(with("n_group", 3), "'n_group': expected groups of 2 experts or more "
                             "that divide 'n_routed_experts', got 3 and 8");
  refuse(with("n_group", 8), "got 8 and 8");
  refuse(with("topk_group", 1),
         "'topk_group': expected at most 'n_group', 4, of "
         "2 experts each, that have "
         "'num_experts_per_tok', 3, got 1");
  refuse(with("qk_rope_head_dim", 3), "'qk_rope_head_dim': expected an even");
  refuse(with("num_key_value_heads", 2),
         "'num_key_value_heads': expected the value of 'num_attention_heads'");
}

// One more layer in the loss, like the last one, with the model's table and
// head.
TEST_F(Experts, DeepSeekPredictsASecondToken) {
  auto config = deepSeek();
  config["first_k_dense_replace"] = 1;
  config["num_nextn_predict_layers"] = 1;
  auto built = build(config);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  auto model = Model::get(*built->module);
  std::set<std::string> names;
  for (ParamOp param : model->globalParams())
    names.insert(param.getSymName().str());
  std::set<std::string> expected = {"model.embed_tokens.weight",
                                    "model.norm.weight",
                                    "lm_head.weight",
                                    "model.layers.4.enorm.weight",
                                    "model.layers.4.hnorm.weight",
                                    "model.layers.4.eh_proj.weight",
                                    "model.layers.4.shared_head.norm.weight"};
  for (ParamOp param : Model::params(model->kindOf(3)))
    expected.insert("model.layers.4." + param.getSymName().str());
  EXPECT_EQ(names, expected);
  EXPECT_EQ(model->stack.getLayers(), 4u);
  auto terms = FunctionRoles(model->loss).results(Role::LossTerm);
  ASSERT_EQ(terms.size(), 1u);
  EXPECT_EQ(terms[0].lossTerm().getName(), "mtp");
  EXPECT_EQ(terms[0].lossTerm().getCoefficient().convertToDouble(), 0.3);
}

TEST_F(Experts, PredictionIsLeftOutWhenAsked) {
  auto config = deepSeek();
  auto plain = build(config);
  ASSERT_TRUE(succeeded(plain)) << diagnostics;
  config["num_nextn_predict_layers"] = 1;
  BuildOptions options{2, 8, {}};
  options.predictionLoss = 0.0;
  auto built = build(config, options);
  ASSERT_TRUE(succeeded(built)) << diagnostics;
  EXPECT_EQ(print(*built), print(*plain));
}

TEST_F(Experts, PredictionHasOneModuleAndAWholeSequence) {
  auto config = deepSeek();
  config["num_nextn_predict_layers"] = 2;
  refuse(config, "'num_nextn_predict_layers': expected 0 or 1; more modules "
                 "are not supported, got 2");
  config["num_nextn_predict_layers"] = 1;
  BuildOptions options{2, 8, {}};
  options.lossBlocks = 2;
  EXPECT_TRUE(failed(build(config, options)));
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("'num_nextn_predict_layers': expected one block of "
                            "the loss, as its layer needs the whole sequence, "
                            "got 2"))
      << diagnostics;
  EXPECT_TRUE(failed(build(config, {2, 1, {}})));
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("expected sequences of 2 tokens "
                            "or more, got 1"))
      << diagnostics;
  options = {2, 8, {}};
  options.predictionLoss = 0.1;
  EXPECT_TRUE(failed(build(deepSeek(), options)));
  EXPECT_TRUE(
      StringRef(diagnostics)
          .contains("expected no loss of multi-token prediction, as "
                    "'num_nextn_predict_layers' has no module of it, got "
                    "0.1\n"))
      << diagnostics;
}

TEST_F(Experts, ChoicesAreOfExperts) {
  auto config = mixtral();
  config["num_experts_per_tok"] = 5;
  refuse(config, "'num_experts_per_tok': expected at most 'num_local_experts', "
                 "4, got 5");
}

// Eight tokens of two choices each.
TEST_F(Experts, RoomIsThatOfTheOptions) {
  EXPECT_EQ(room(mixtral(), {}), Room({16, 1, 0}));
  // A token needs a row for each expert of a block at most.
  EXPECT_EQ(room(mixtral(), {.ranks = 2}), Room({32, 2, 0}));
  EXPECT_EQ(room(mixtral(), {.ranks = 4}), Room({32, 4, 0}));
  // 1.3 times 8 rows in each of two blocks, rounded up.
  EXPECT_EQ(room(mixtral(), {.ranks = 2, .buffer = 1.3}), Room({22, 2, 0}));
  EXPECT_EQ(room(mixtral(), {.ranks = 2, .buffer = 9}), Room({32, 2, 0}));
  // 1.2 times 4 rows of each of four experts, rounded up.
  EXPECT_EQ(room(mixtral(), {.capacity = 1.2}), Room({16, 1, 5}));
  EXPECT_EQ(room(mixtral(), {.capacity = 0.5}), Room({8, 1, 2}));
  EXPECT_EQ(room(mixtral(), {.ranks = 2, .capacity = 1}), Room({16, 2, 4}));
  // Rows of a half of the sequence; a capacity may come from one half alone.
  EXPECT_EQ(room(mixtral(), {.parts = 2}), Room({8, 1, 0}));
  EXPECT_EQ(room(mixtral(), {.ranks = 2, .parts = 2}), Room({16, 2, 0}));
  EXPECT_EQ(room(mixtral(), {.ranks = 2, .parts = 2, .buffer = 1.3}),
            Room({12, 2, 0}));
  EXPECT_EQ(room(mixtral(), {.parts = 4, .capacity = 0.5}), Room({4, 1, 2}));
  EXPECT_EQ(room(mixtral(), {.ranks = 2, .parts = 2, .capacity = 0.5}),
            Room({8, 2, 2}));
  // Lengths that ranks do not divide are whole: passes/shard refuses them.
  EXPECT_EQ(room(mixtral(), {.parts = 3}), Room({16, 1, 0}));
  BuildOptions options{1, 8, {}};
  options.experts.ranks = 3;
  EXPECT_TRUE(failed(build(mixtral(), options)));
  EXPECT_TRUE(StringRef(diagnostics)
                  .contains("'num_local_experts': expected a multiple of the 3 "
                            "ranks along 'expert', got 4"))
      << diagnostics;
}

} // namespace
