// SPDX-License-Identifier: Apache-2.0
//
// gpt-oss (OpenAI 2025): attention with sinks and biases, windows in every
// other layer, and experts with biases, whose weights are stored as one tensor
// of all and whose activation is clamped:
//   (up + 1) * gate * sigmoid(alpha * gate), gate at most limit, |up| at most
//   limit.
#include "models/AttentionWindows.h"
#include "models/Decoder.h"
#include "models/Experts.h"
#include "models/Family.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

struct GptOssConfig {
  ExpertConfig experts;
  double alpha, limit; // constants of the activation
};

/// gate and up of a row lie in turn along its last dimension.
class GptOssExperts : public ExpertBlock {
public:
  GptOssExperts(ModelBuilder &builder, const GptOssConfig &gpt)
      : ExpertBlock(builder, gpt.experts), gpt(gpt) {}

private:
  void declareWeights() override {
    Attribute init = builder.normal(config.initializerRange);
    Attribute zero = builder.constant(0.0);
    int64_t experts = config.experts, inner = config.feedForward;
    builder.param(config.names.up, {experts, config.embed, 2 * inner},
                  {"experts", "embed", "mlp"}, init);
    builder.param("mlp.experts.gate_up_proj_bias", {experts, 2 * inner},
                  {"experts", "mlp"}, zero);
    builder.param(config.names.down, {experts, inner, config.embed},
                  {"experts", "mlp", "embed"}, init);
    builder.param("mlp.experts.down_proj_bias", {experts, config.embed},
                  {"experts", "embed"}, zero);
  }

  /// `product` and the bias of each row's expert.
  Value biased(Value rows, StringRef name, int64_t out, int64_t in,
               Value counts) {
    Value made = product(rows, name, out, in, counts, /*transposed=*/false);
    Value bias = builder.readF32((name + "_bias").str(), {config.experts, out});
    return GroupedBiasOp::create(builder, made, bias, counts,
                                 builder.microbatch.experts.ranks);
  }

  Value splat(Value like, double number) {
    return builder.splat(like.getType(), number);
  }

  /// `x`, or `bound` where `x` is beyond it as `beyond` says.
  Value clamp(Value x, arith::CmpFPredicate beyond, double bound) {
    Value limit = splat(x, bound);
    Value isBeyond = arith::CmpFOp::create(builder, beyond, x, limit);
    return arith::SelectOp::create(builder, isBeyond, limit, x);
  }

  /// The activation of `both` [B, R, 2 F]: [B, R, F].
  Value activate(Value both) {
    using Predicate = arith::CmpFPredicate;
    auto type = cast<RankedTensorType>(both.getType());
    auto sized = [&](ArrayRef<int64_t> inner) {
      SmallVector<int64_t> shape(type.getShape().drop_back());
      shape.append(inner.begin(), inner.end());
      return type.clone(shape);
    };
    int64_t inner = config.feedForward;
    Value pairs = ReshapeOp::create(builder, sized({inner, 2}), both);
    Type one = sized({inner, 1});
    auto split =
        SplitOp::create(builder, TypeRange{one, one}, pairs, /*dim=*/3);
    auto part = [&](int index) -> Value {
      return ReshapeOp::create(builder, sized({inner}),
                               split.getParts()[index]);
    };
    Value gate = clamp(part(0), Predicate::OGT, gpt.limit);
    Value up = clamp(part(1), Predicate::OGT, gpt.limit);
    up = clamp(up, Predicate::OLT, -gpt.limit);
    Value scaled = arith::MulFOp::create(builder, gate, splat(gate, gpt.alpha));
    Value power =
        math::ExpOp::create(builder, arith::NegFOp::create(builder, scaled));
    Value sum = arith::AddFOp::create(builder, power, splat(gate, 1.0));
    Value gated = arith::DivFOp::create(builder, gate, sum);
    Value lifted = arith::AddFOp::create(builder, up, splat(up, 1.0));
    return arith::MulFOp::create(builder, lifted, gated);
  }

  Value apply(Value rows, Value counts) override {
    int64_t inner = config.feedForward, embed = config.embed;
    Value both = builder.named(
        "moe_mlpwi_0", biased(rows, config.names.up, 2 * inner, embed, counts));
    return builder.named("moe_mlpwo", biased(activate(both), config.names.down,
                                             embed, inner, counts));
  }

  const GptOssConfig gpt;
};

class GptOssBuilder : public DecoderBuilder {
public:
  GptOssBuilder(const DecoderConfig &config, const GptOssConfig &gpt,
                ModuleOp module, const Microbatch &microbatch)
      : DecoderBuilder(config, module, microbatch), experts(*this, gpt) {}

private:
  void declareAttention() override {
    DecoderBuilder::declareAttention();
    param("self_attn.sinks", {config.heads}, {"heads"},
          normal(config.initializerRange));
  }

  Value sinks() override { return readF32("self_attn.sinks", {config.heads}); }

  void declareFeedForward() override { experts.declare(); }
  Value feedForward(Value x) override { return experts.build(x); }

  GptOssExperts experts;
};

} // namespace

static GptOssConfig readExperts(Config &config, const DecoderConfig &decoder,
                                const Microbatch &microbatch) {
  GptOssConfig gpt{ExpertConfig::read(config, decoder, microbatch,
                                      {"num_local_experts", 128, 4}),
                   config.positive("swiglu_alpha", 1.702),
                   config.positive("swiglu_limit", 7.0)};
  gpt.experts.routerBias = "mlp.router.bias";
  gpt.experts.names = {.router = "mlp.router.weight",
                       .gate = {},
                       .up = "mlp.experts.gate_up_proj",
                       .down = "mlp.experts.down_proj"};
  gpt.experts.readLosses(config, microbatch);
  return gpt;
}

static std::unique_ptr<ModelBuilder>
readGptOss(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.normEpsilon = 1e-5;
  defaults.headSize = 64;
  defaults.attentionBias = true;
  defaults.keyHeads = 8;
  defaults.rotary.fallback = 150000.0;
  auto decoder = DecoderConfig::read(config, microbatch, defaults);
  // A file without settings has those of the published models.
  if (!config.find("rope_parameters") && !config.find("rope_scaling"))
    decoder.kinds.front().rotary.setYarn(/*factor=*/32,
                                         /*originalContext=*/4096,
                                         /*truncates=*/false);
  auto sliding = readSlidingLayers(
      config, decoder.layers, [](int64_t layer) { return layer % 2 == 0; });
  int64_t window = config.size("sliding_window", 128);
  if (!config.failed())
    setWindows(decoder, sliding, window);
  GptOssConfig gpt = readExperts(config, decoder, microbatch);
  config.spelling("num_experts_per_tok", "experts_per_token");
  return std::make_unique<GptOssBuilder>(decoder, gpt, module, microbatch);
}

static constexpr NeutralKey gptOssKeys[] = {
    {"initial_context_length",
     NeutralKey::Any}, // that of the rotary settings counts
};

const Family mlir::rota::gptOssFamily = {
    .modelType = "gpt_oss",
    .description = "gpt-oss: sinks and biases of attention, windows in every "
                   "other layer, experts with biases",
    .languageModel = "GptOssForCausalLM",
    .bareModel = "GptOssModel",
    .neutralKeys = gptOssKeys,
    .read = readGptOss};
