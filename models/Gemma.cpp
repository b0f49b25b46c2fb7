// SPDX-License-Identifier: Apache-2.0
//
// Gemma 2 (Gemma Team 2024): norms before and after attention and feed-forward
// with gains around 0, a gated feed-forward with GELU, scaled embeddings, caps
// of scores and logits, and windows in every other layer.
// Gemma 3 (Gemma Team 2025), its text model: norms of each head's query and key
// instead of caps, windows in five layers of six, and rotary settings of their
// own for these.
#include "models/AttentionWindows.h"
#include "models/Decoder.h"
#include "models/Family.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

namespace {

struct GemmaConfig : DecoderConfig {
  std::optional<double> logitCap;
};

class Gemma2Builder : public DecoderBuilder {
public:
  Gemma2Builder(const GemmaConfig &config, ModuleOp module,
                const Microbatch &microbatch)
      : DecoderBuilder(config, module, microbatch), logitCap(config.logitCap) {}

protected:
  void declareLayer() override {
    declareNorm("input_layernorm.weight", config.embed);
    declareAttention();
    declareNorm("post_attention_layernorm.weight", config.embed);
    declareNorm("pre_feedforward_layernorm.weight", config.embed);
    declareFeedForward();
    declareNorm("post_feedforward_layernorm.weight", config.embed);
  }

private:
  void declareNorm(StringRef gain, int64_t width) override {
    param(gain, {width}, {"norm"}, constant(0.0));
  }

  /// The gain is 1 + the parameter.
  Value norm(Value x, StringRef gain) override {
    int64_t width = cast<RankedTensorType>(x.getType()).getShape().back();
    auto type = tensor({width}, getF32Type());
    Value sum =
        arith::AddFOp::create(*this, splat(type, 1.0), readF32(gain, {width}));
    return RMSNormOp::create(*this, x.getType(), x, sum,
                             getF64FloatAttr(config.normEpsilon),
                             /*centered=*/UnitAttr());
  }

  Value embedded(Value rows) override {
    auto type = cast<RankedTensorType>(rows.getType());
    Value scale = splat(type, std::sqrt(double(config.embed)));
    return arith::MulFOp::create(*this, rows, scale);
  }

  Value cappedLogits(Value product) override {
    if (!logitCap)
      return product;
    auto type = cast<RankedTensorType>(product.getType());
    Value cap = splat(type, *logitCap);
    Value share =
        math::TanhOp::create(*this, arith::DivFOp::create(*this, product, cap));
    return arith::MulFOp::create(*this, share, cap);
  }

  Value buildLayer(Value x) override {
    Value attended = attention(norm(x, "input_layernorm.weight"));
    attended = norm(attended, "post_attention_layernorm.weight");
    x = named("attention_out", arith::AddFOp::create(*this, x, attended));
    Value widened = feedForward(norm(x, "pre_feedforward_layernorm.weight"));
    widened = norm(widened, "post_feedforward_layernorm.weight");
    return arith::AddFOp::create(*this, x, widened);
  }

  std::optional<double> logitCap;
};

class Gemma3Builder : public Gemma2Builder {
public:
  using Gemma2Builder::Gemma2Builder;

private:
  void declareLayer() override {
    Gemma2Builder::declareLayer();
    declareHeadNorms();
  }

  Value projectHeads(Value x, StringRef name, int64_t heads) override {
    return headNorm(DecoderBuilder::projectHeads(x, name, heads), name);
  }
};

} // namespace

static std::optional<double> readCap(Config &config, StringRef key,
                                     std::optional<double> fallback) {
  if (!config.find(key) && (config.has(key) || !fallback))
    return std::nullopt;
  return config.real(key, fallback, "a number above 0 or null",
                     [](double value) { return value > 0; });
}

/// Windows in the layers for which `slides` is true, unless `layer_types` says
/// otherwise.
static void readWindows(Config &config, GemmaConfig &gemma,
                        llvm::function_ref<bool(int64_t)> slides) {
  auto sliding = readSlidingLayers(config, gemma.layers, slides);
  // Without windows the kinds of layers still have their rotary settings.
  StringRef key = config.spelling("sliding_window", "sliding_window_size");
  bool isNull = config.has(key) && !config.find(key);
  int64_t window = isNull ? Config::maxSize : config.size(key, 4096);
  if (!config.failed())
    setWindows(gemma, sliding, window);
}

/// The values of keys that a configuration of a version may lack.
struct GemmaDefaults {
  std::optional<double> softCap, logitCap;
  RotaryKeys rotary;
};

/// The keys of both versions.
static GemmaConfig readKeys(Config &config, const Microbatch &microbatch,
                            const GemmaDefaults &version) {
  DecoderDefaults defaults;
  defaults.rotary = version.rotary;
  defaults.tied = true;
  defaults.headSize = 256;
  defaults.keyHeads = 4;
  defaults.attentionBias = false;
  defaults.activation = "gelu_pytorch_tanh";
  GemmaConfig gemma{DecoderConfig::read(config, microbatch, defaults), {}};
  // The newer name of `hidden_act` counts where a file has both.
  gemma.activation =
      readActivation(config, "hidden_activation", defaults.activation);
  gemma.attentionScale =
      1.0 / std::sqrt(config.positive("query_pre_attn_scalar", 256.0));
  gemma.logitCap = readCap(config, "final_logit_softcapping", version.logitCap);
  gemma.softCap = readCap(config, "attn_logit_softcapping", version.softCap);
  if (config.flag("use_bidirectional_attention", false))
    config.expected("use_bidirectional_attention",
                    "false; true is not supported");
  return gemma;
}

static std::unique_ptr<ModelBuilder>
readGemma2(Config &config, const Microbatch &microbatch, ModuleOp module) {
  GemmaConfig gemma = readKeys(config, microbatch, {50.0, 30.0, {}});
  readWindows(config, gemma, [](int64_t layer) { return layer % 2 == 0; });
  return std::make_unique<Gemma2Builder>(gemma, module, microbatch);
}

const Family mlir::rota::gemma2Family = {
    .modelType = "gemma2",
    .description = "norms around attention and feed-forward, caps of scores "
                   "and logits, windows in every other layer",
    .languageModel = "Gemma2ForCausalLM",
    .bareModel = "Gemma2Model",
    .read = readGemma2};

static std::unique_ptr<ModelBuilder>
readGemma3(Config &config, const Microbatch &microbatch, ModuleOp module) {
  RotaryKeys full = {"rope_parameters.full_attention", "rope_theta",
                     "rope_scaling", 1e6};
  RotaryKeys sliding = {"rope_parameters.sliding_attention",
                        "rope_local_base_freq", /*scaling=*/"", 10000.0};
  GemmaConfig gemma = readKeys(config, microbatch, {{}, {}, full});
  if (gemma.softCap)
    config.expected("attn_logit_softcapping",
                    "null; scores have no cap in Gemma 3");
  int64_t period = config.size(
      config.spelling("sliding_window_pattern", "_sliding_window_pattern"), 6);
  readWindows(config, gemma,
              [&](int64_t layer) { return (layer + 1) % period != 0; });
  Rotary rotary = Rotary::read(config, microbatch.sequenceLength, sliding);
  for (LayerKind &kind : gemma.kinds)
    if (kind.window)
      kind.rotary = rotary;
  return std::make_unique<Gemma3Builder>(gemma, module, microbatch);
}

const Family mlir::rota::gemma3Family = {
    .modelType = "gemma3_text",
    .description = "the text model of Gemma 3: Gemma 2 with norms of each "
                   "head's query and key instead of caps, windows in five "
                   "layers of six",
    .languageModel = "Gemma3ForCausalLM",
    .bareModel = "Gemma3TextModel",
    .read = readGemma3};
