// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-V3 (DeepSeek-AI 2024): multi-head latent attention (section 2.1.1),
// whose query, key and value come out of low-rank latents, and whose positions
// are in dimensions of their own, which all heads' keys share.
//
// Shapes: as in Decoder.h, and latents of Q (query) and C (key and value),
// heads of N dimensions without and R with position, values of W.
#include "models/Decoder.h"
#include "models/Experts.h"
#include "models/Family.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

/// The epsilon of norms of latents, which does not depend on `rms_norm_eps`.
static constexpr double latentEpsilon = 1e-6;

namespace {

/// The sizes of latent attention.
struct LatentSizes {
  std::optional<int64_t> query; // Q; none: queries are projected at once
  int64_t keyValue;             // C
  int64_t plain, rotary;        // N, R
  int64_t value;                // W
  bool interleaved;             // pairs of R are neighbours, not halves apart
};

class DeepSeekBuilder : public DecoderBuilder {
public:
  /// `shared`: the inner width of the shared experts.
  DeepSeekBuilder(const DecoderConfig &config, const LatentSizes &sizes,
                  const ExpertConfig &experts, int64_t shared, ModuleOp module,
                  const Microbatch &microbatch)
      : DecoderBuilder(config, module, microbatch), sizes(sizes),
        experts(*this, experts), shared(shared) {}

private:
  int64_t keySize() const { return sizes.plain + sizes.rotary; }

  void declareFeedForward() override {
    if (!kind().sparse)
      return DecoderBuilder::declareFeedForward();
    experts.declare();
    declareGated("mlp.shared_experts", shared);
  }

  Value feedForward(Value x) override {
    if (!kind().sparse)
      return DecoderBuilder::feedForward(x);
    return arith::AddFOp::create(*this, experts.build(x),
                                 gated(x, "mlp.shared_experts", shared));
  }

  void declareAttention() override {
    Attribute init = normal(config.initializerRange);
    int64_t embed = config.embed, heads = config.heads;
    if (sizes.query) {
      linear("self_attn.q_a_proj.weight", {*sizes.query, embed},
             {"query_latent", "embed"}, init);
      declareNorm("self_attn.q_a_layernorm.weight", *sizes.query);
      linear("self_attn.q_b_proj.weight", {heads * keySize(), *sizes.query},
             {"heads", "query_latent"}, init);
    } else {
      linear("self_attn.q_proj.weight", {heads * keySize(), embed},
             {"heads", "embed"}, init);
    }
    linear("self_attn.kv_a_proj_with_mqa.weight",
           {sizes.keyValue + sizes.rotary, embed}, {"kv_latent", "embed"},
           init);
    declareNorm("self_attn.kv_a_layernorm.weight", sizes.keyValue);
    linear("self_attn.kv_b_proj.weight",
           {heads * (sizes.plain + sizes.value), sizes.keyValue},
           {"heads", "kv_latent"}, init);
    linear("self_attn.o_proj.weight", {embed, heads * sizes.value},
           {"embed", "heads"}, init);
  }

  /// The two parts of `x` along its last dimension.
  std::pair<Value, Value> cut(Value x, int64_t first) {
    auto type = cast<RankedTensorType>(x.getType());
    int64_t last = type.getRank() - 1;
    SmallVector<int64_t> shape(type.getShape());
    shape[last] = first;
    Type front = type.clone(shape);
    shape[last] = type.getDimSize(last) - first;
    auto split =
        SplitOp::create(*this, TypeRange{front, type.clone(shape)}, x, last);
    return {split.getParts()[0], split.getParts()[1]};
  }

  Value join(ValueRange parts) {
    auto type = cast<RankedTensorType>(parts.front().getType());
    int64_t last = type.getRank() - 1;
    SmallVector<int64_t> shape(type.getShape());
    shape[last] = 0;
    for (Value part : parts)
      shape[last] += cast<RankedTensorType>(part.getType()).getDimSize(last);
    return ConcatOp::create(*this, type.clone(shape), parts, last);
  }

  /// `x` [B, S, heads, R] by position, with the rotary table. Interleaved pairs
  /// are first brought into halves, where they stay: a product of query and key
  /// is a sum over all dimensions in any order.
  Value rotatePart(Value x, int64_t heads, Value table) {
    if (sizes.interleaved) {
      int64_t pairs = sizes.rotary / 2;
      Value paired = ReshapeOp::create(*this, activation({heads, pairs, 2}), x);
      auto [even, odd] = cut(paired, 1);
      auto half = activation({heads, pairs});
      x = join({ReshapeOp::create(*this, half, even),
                ReshapeOp::create(*this, half, odd)});
    }
    return rotate(x, table);
  }

  /// [B, S, H, N + R]
  Value latentQuery(Value x, Value table) {
    int64_t width = config.heads * keySize();
    Value flat;
    if (sizes.query) {
      Value latent =
          named("query_wa_proj", project(x, "self_attn.q_a_proj.weight",
                                         *sizes.query, config.embed));
      latent = named("mla_q", rmsNorm(latent, "self_attn.q_a_layernorm.weight",
                                      latentEpsilon));
      flat = project(latent, "self_attn.q_b_proj.weight", width, *sizes.query);
    } else {
      flat = project(x, "self_attn.q_proj.weight", width, config.embed);
    }
    Value query =
        ReshapeOp::create(*this, activation({config.heads, keySize()}), flat);
    auto [plain, rotary] = cut(query, sizes.plain);
    return join({plain, rotatePart(rotary, config.heads, table)});
  }

  /// Key [B, S, H, N + R] and value [B, S, H, W].
  std::pair<Value, Value> latentKeyValue(Value x, Value table) {
    int64_t heads = config.heads, size = sizes.plain + sizes.value;
    Value both = named("kv_wa_proj",
                       project(x, "self_attn.kv_a_proj_with_mqa.weight",
                               sizes.keyValue + sizes.rotary, config.embed));
    auto [latent, shared] = cut(both, sizes.keyValue);
    latent = named("mla_kv", rmsNorm(latent, "self_attn.kv_a_layernorm.weight",
                                     latentEpsilon));
    Value flat = project(latent, "self_attn.kv_b_proj.weight", heads * size,
                         sizes.keyValue);
    Value wide = ReshapeOp::create(*this, activation({heads, size}), flat);
    auto [plain, value] = cut(wide, sizes.plain);
    Value one = ReshapeOp::create(*this, activation({1, sizes.rotary}), shared);
    Value rotary = ReshapeOp::create(*this, activation({sizes.rotary}),
                                     rotatePart(one, 1, table));
    rotary = BroadcastOp::create(*this, activation({heads, sizes.rotary}),
                                 rotary, ArrayRef<int64_t>{0, 1, 3});
    return {join({plain, rotary}), value};
  }

  Value attention(Value x) override {
    Value table = rotaryTable();
    Value query = named("query_proj", latentQuery(x, table));
    auto [key, value] = latentKeyValue(x, table);
    key = named("key_proj", key);
    value = named("value_proj", value);
    Value context = named("context", attend(query, key, value));
    int64_t width = config.heads * sizes.value;
    Value flat = ReshapeOp::create(*this, activation({width}), context);
    return named("out_proj", projectOut(flat, width));
  }

  const LatentSizes sizes;
  ExpertBlock experts;
  int64_t shared;
};

} // namespace

static LatentSizes readSizes(Config &config) {
  LatentSizes sizes;
  // A file that says null projects queries at once.
  if (config.find("q_lora_rank") || !config.has("q_lora_rank"))
    sizes.query = config.size("q_lora_rank", 1536);
  sizes.keyValue = config.size("kv_lora_rank", 512);
  sizes.plain = config.size("qk_nope_head_dim", 128);
  sizes.rotary = config.size("qk_rope_head_dim", 64);
  sizes.value = config.size("v_head_dim", 128);
  sizes.interleaved = config.flag("rope_interleave", true);
  if (sizes.rotary % 2 != 0)
    config.expected("qk_rope_head_dim", "an even size");
  int64_t whole = sizes.plain + sizes.rotary;
  if (config.size("qk_head_dim", whole) != whole)
    config.expected("qk_head_dim", "the sum of 'qk_nope_head_dim' and "
                                   "'qk_rope_head_dim', " +
                                       Twine(whole));
  return sizes;
}

/// Checks products of sizes in an order in which none overflows.
static void checkSizes(Config &config, const DecoderConfig &decoder,
                       const LatentSizes &sizes, const Microbatch &microbatch) {
  int64_t key = sizes.plain + sizes.rotary, both = sizes.plain + sizes.value;
  int64_t latent = std::max(sizes.query.value_or(1), sizes.keyValue);
  int64_t widest = std::max({key, both, sizes.value});
  (void)(failed(checkElements(config, "kv_lora_rank",
                              "the largest latent x hidden_size",
                              {latent, decoder.embed})) ||
         failed(checkElements(
             config, "num_attention_heads",
             "num_attention_heads x the largest head x the largest of latents "
             "and hidden_size",
             {decoder.heads, widest, std::max(latent, decoder.embed)})) ||
         failed(checkElements(
             config, "hidden_size",
             "sequences x sequence length x num_attention_heads x the largest "
             "head",
             {microbatch.sequences * microbatch.sequenceLength, decoder.heads,
              widest})));
}

static ExpertConfig readExperts(Config &config, const DecoderConfig &decoder,
                                const Microbatch &microbatch) {
  auto experts = ExpertConfig::read(config, decoder, microbatch,
                                    {"n_routed_experts", 256, 8, 2048});
  experts.normalizes = config.flag("norm_topk_prob", true);
  experts.scaling = config.positive("routed_scaling_factor", 2.5);
  experts.sigmoid = true;
  experts.bias = "mlp.gate.e_score_correction_bias";
  experts.biasRate = microbatch.routers.biasRate;
  experts.groups = config.size("n_group", 8);
  experts.topGroups = config.size("topk_group", 4);
  for (auto [key, only] :
       {std::pair("scoring_func", "sigmoid"), {"topk_method", "noaux_tc"}})
    if (config.text(key, only) != only)
      config.expected(key, "\"" + Twine(only) +
                               "\"; other routers are not supported");
  if (config.size("moe_layer_freq", 1) != 1)
    config.expected("moe_layer_freq", "1");
  if (config.failed() || experts.groups == 1)
    return experts;
  int64_t size = experts.experts / experts.groups;
  if (experts.experts % experts.groups != 0 || size < 2)
    config.error("n_group")
        << "expected groups of 2 experts or more that divide "
           "'n_routed_experts', got "
        << experts.groups << " and " << experts.experts;
  else if (experts.topGroups > experts.groups ||
           experts.topGroups * size < experts.choices)
    config.error("topk_group")
        << "expected at most 'n_group', " << experts.groups << ", of " << size
        << " experts each, that have 'num_experts_per_tok', " << experts.choices
        << ", got " << experts.topGroups;
  return experts;
}

/// The first `first_k_dense_replace` layers are dense.
static void setSparseLayers(Config &config, DecoderConfig &decoder) {
  const nlohmann::json *dense = config.find("first_k_dense_replace");
  if (dense && !dense->is_number_unsigned()) {
    config.expected("first_k_dense_replace", "an integer of at least 0");
    return;
  }
  uint64_t first = dense ? dense->get<uint64_t>() : 3;
  decoder.setSparse([&](int64_t layer) { return uint64_t(layer) >= first; });
}

static std::unique_ptr<ModelBuilder>
readDeepSeekV3(Config &config, const Microbatch &microbatch, ModuleOp module) {
  LatentSizes sizes = readSizes(config);
  DecoderDefaults defaults;
  defaults.headSize = sizes.rotary; // width of the rotary table
  auto decoder = DecoderConfig::read(config, microbatch, defaults);
  if (!config.failed() && decoder.headSize != sizes.rotary)
    config.error("head_dim") << "expected the value of 'qk_rope_head_dim', "
                             << sizes.rotary << ", got " << decoder.headSize;
  if (!config.failed() && decoder.keyHeads != decoder.heads)
    config.error("num_key_value_heads")
        << "expected the value of 'num_attention_heads', " << decoder.heads
        << ", got " << decoder.keyHeads;
  if (!config.failed())
    checkSizes(config, decoder, sizes, microbatch);
  double temperature = decoder.kinds.front().rotary.temperature;
  decoder.attentionScale =
      temperature * temperature / std::sqrt(double(sizes.plain + sizes.rotary));
  ExpertConfig experts = readExperts(config, decoder, microbatch);
  int64_t shared = config.size("n_shared_experts", 1) * experts.feedForward;
  if (!config.failed())
    (void)checkElements(
        config, "n_shared_experts",
        "n_shared_experts x moe_intermediate_size x hidden_size",
        {shared, decoder.embed});
  setSparseLayers(config, decoder);
  decoder.readPrediction(config, microbatch);
  return std::make_unique<DeepSeekBuilder>(decoder, sizes, experts, shared,
                                           module, microbatch);
}

static constexpr NeutralKey deepSeekKeys[] = {
    {"ep_size", NeutralKey::Any}, // ranks of experts where it was trained
    {"aux_loss_alpha",
     NeutralKey::Any}, // for its training; transformers has no such loss
    {"seq_aux", NeutralKey::Any},
    {"output_router_logits", NeutralKey::False},
};

const Family mlir::rota::deepSeekV3Family = {
    .modelType = "deepseek_v3",
    .description = "latent attention, mixtures of experts with sigmoid scores, "
                   "groups and shared experts, multi-token prediction",
    .languageModel = "DeepseekV3ForCausalLM",
    .bareModel = "DeepseekV3Model",
    .neutralKeys = deepSeekKeys,
    .read = readDeepSeekV3};
