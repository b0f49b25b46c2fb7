// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 (Radford et al. 2019): layer norms with biases, learned positions,
// projections of query, key and value that files join in one, a feed-forward
// without a gate. Weights of projections are [in, out].
#include "models/Decoder.h"
#include "models/Family.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::rota;

static constexpr StringLiteral positionTable = "transformer.wpe.weight";

namespace {

class GPT2Builder : public DecoderBuilder {
public:
  GPT2Builder(const DecoderConfig &config, int64_t positions, ModuleOp module,
              const Microbatch &microbatch)
      : DecoderBuilder(config, module, microbatch,
                       {"transformer.wte.weight", "transformer.ln_f.weight",
                        "lm_head.weight", "transformer.h"}),
        positions(positions) {}

private:
  static std::string biasOf(StringRef weight) {
    return (weight.drop_back(StringRef("weight").size()) + "bias").str();
  }

  void declareEnds() override {
    DecoderBuilder::declareEnds();
    param(positionTable, {positions, config.embed}, {"positions", "embed"},
          normal(config.initializerRange));
  }

  void declareNorm(StringRef gain, int64_t width) override {
    DecoderBuilder::declareNorm(gain, width);
    param(biasOf(gain), {width}, {"norm"}, constant(0.0));
  }

  /// Declares a projection; `deviation` is that of its weight.
  void declareLinear(StringRef weight, std::pair<StringRef, int64_t> in,
                     std::pair<StringRef, int64_t> out, double deviation) {
    param(weight, {in.second, out.second}, {in.first, out.first},
          normal(deviation));
    param(biasOf(weight), {out.second},
          {out.first == "embed" ? "norm" : out.first}, constant(0.0));
  }

  /// Declares the projections of query, key and value.
  void declareHeads() {
    int64_t embed = config.embed;
    SmallVector<JoinedPart> weights, biases;
    for (auto [name, axis] : {std::pair("query", "heads"),
                              {"key", "kv_heads"},
                              {"value", "kv_heads"}}) {
      std::string weight = weightOf(name);
      weights.push_back({weight, {embed, embed}, {"embed", axis}});
      biases.push_back({biasOf(weight), {embed}, {axis}});
    }
    joinedParams("attn.c_attn.weight", /*dimension=*/1, weights,
                 normal(config.initializerRange));
    joinedParams("attn.c_attn.bias", /*dimension=*/0, biases, constant(0.0));
  }

  static std::string weightOf(StringRef heads) {
    return ("attn.c_attn." + heads + ".weight").str();
  }

  void declareLayer() override {
    int64_t embed = config.embed, inner = config.feedForward;
    double range = config.initializerRange;
    // The projections into the residual stream begin smaller: it adds up two
    // from each layer.
    double residual = range / std::sqrt(2.0 * config.layers);
    declareNorm("ln_1.weight", embed);
    declareHeads();
    declareLinear("attn.c_proj.weight", {"heads", embed}, {"embed", embed},
                  residual);
    declareNorm("ln_2.weight", embed);
    declareLinear("mlp.c_fc.weight", {"embed", embed}, {"mlp", inner}, range);
    declareLinear("mlp.c_proj.weight", {"mlp", inner}, {"embed", embed},
                  residual);
  }

  Value linear(Value x, StringRef weight, int64_t out) {
    int64_t in = cast<RankedTensorType>(x.getType()).getShape().back();
    Value product = EinsumOp::create(*this, activation({out}), "bsk,kn->bsn", x,
                                     read(weight, {in, out}));
    return addBias(product, biasOf(weight));
  }

  /// In f32, and rounded once.
  Value norm(Value x, StringRef gain) override {
    auto type = cast<RankedTensorType>(x.getType());
    auto wide = cast<RankedTensorType>(type.clone(getF32Type()));
    int64_t last = type.getRank() - 1, width = type.getDimSize(last);
    if (type != wide)
      x = arith::ExtFOp::create(*this, wide, x);
    Value normed =
        RMSNormOp::create(*this, wide, x, readF32(gain, {width}),
                          getF64FloatAttr(config.normEpsilon), getUnitAttr());
    Value bias =
        BroadcastOp::create(*this, wide, readF32(biasOf(gain), {width}), last);
    Value sum = arith::AddFOp::create(*this, normed, bias);
    return type == wide ? sum : arith::TruncFOp::create(*this, type, sum);
  }

  /// Adds the row of its position to each token's.
  Value embedded(Value rows) override {
    if (Value inDocuments = documentPositions()) {
      Value table = read(positionTable, {positions, config.embed});
      Value places =
          EmbeddingOp::create(*this, rows.getType(), inDocuments, table);
      return arith::AddFOp::create(*this, rows, places);
    }
    int64_t length = microbatch.sequenceLength;
    SmallVector<int32_t> numbers(length);
    std::iota(numbers.begin(), numbers.end(), 0);
    Value tokens = arith::ConstantOp::create(
        *this, DenseElementsAttr::get(tensor({1, length}, getI32Type()),
                                      ArrayRef<int32_t>(numbers)));
    Value table = read(positionTable, {positions, config.embed});
    Value places = EmbeddingOp::create(
        *this, tensor({1, length, config.embed}, computeType()), tokens, table);
    places = ReshapeOp::create(
        *this, tensor({length, config.embed}, computeType()), places);
    places = BroadcastOp::create(*this, rows.getType(), places,
                                 ArrayRef<int64_t>{1, 2});
    return arith::AddFOp::create(*this, rows, places);
  }

  /// The query, key or value of `x`, [B, S, H, D].
  Value projected(Value x, StringRef heads) {
    return splitHeads(linear(x, weightOf(heads), config.embed), config.heads);
  }

  Value selfAttention(Value x) {
    Value query = named("query_proj", projected(x, "query"));
    Value key = named("key_proj", projected(x, "key"));
    Value value = named("value_proj", projected(x, "value"));
    Value context = named("context", attend(query, key, value));
    Value flat = ReshapeOp::create(*this, activation({config.embed}), context);
    return named("out_proj", linear(flat, "attn.c_proj.weight", config.embed));
  }

  Value buildLayer(Value x) override {
    Value attended = selfAttention(norm(x, "ln_1.weight"));
    x = named("attention_out", arith::AddFOp::create(*this, x, attended));
    Value inner = named("mlpwi", linear(norm(x, "ln_2.weight"),
                                        "mlp.c_fc.weight", config.feedForward));
    Value active = ActivationOp::create(*this, inner.getType(),
                                        config.activation, inner, Value());
    Value narrowed =
        named("mlpwo", linear(active, "mlp.c_proj.weight", config.embed));
    return arith::AddFOp::create(*this, x, narrowed);
  }

  int64_t positions;
};

} // namespace

/// Published files ask for dropout, without which most people train.
static void ignoreDropout(Config &config) {
  for (StringRef key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    double share = config.share(key, 0.0);
    if (share != 0)
      config.warning(key) << "dropout of " << shortText(share)
                          << " is ignored: models train without";
  }
}

static DecoderConfig readKeys(Config &config) {
  DecoderConfig gpt;
  gpt.vocabulary = config.size("vocab_size");
  gpt.embed = config.size("n_embd");
  gpt.layers = config.size("n_layer", {}, Config::maxLayers);
  gpt.headsKey = gpt.keyHeadsKey = "n_head";
  gpt.heads = gpt.keyHeads = config.size(gpt.headsKey);
  gpt.headSize = std::max<int64_t>(1, gpt.embed / gpt.heads);
  gpt.feedForward =
      config.size("n_inner", std::min(4 * gpt.embed, Config::maxSize));
  gpt.normEpsilon = config.share("layer_norm_epsilon", 1e-5);
  gpt.initializerRange = config.share("initializer_range", 0.02);
  gpt.attentionScale = 1.0 / std::sqrt(double(gpt.headSize));
  gpt.activation = readActivation(config, "activation_function", "gelu_new");
  gpt.tied = config.flag("tie_word_embeddings", true);
  if (!config.flag("scale_attn_weights", true))
    config.expected("scale_attn_weights", "true; false is not supported");
  if (config.flag("scale_attn_by_inverse_layer_idx", false))
    config.expected("scale_attn_by_inverse_layer_idx",
                    "false; true is not supported");
  if (!config.failed() && gpt.embed % gpt.heads != 0)
    config.error("n_head") << "expected a divisor of 'n_embd', got "
                           << gpt.heads << " and " << gpt.embed;
  return gpt;
}

/// Checks products of sizes in an order in which none overflows.
static void checkSizes(Config &config, const DecoderConfig &gpt,
                       int64_t positions, const Microbatch &microbatch) {
  int64_t widest = std::max({gpt.vocabulary, 3 * gpt.embed, gpt.feedForward});
  (void)(failed(checkElements(config, "vocab_size", "vocab_size x n_embd",
                              {gpt.vocabulary, gpt.embed})) ||
         failed(checkElements(config, "n_positions", "n_positions x n_embd",
                              {positions, gpt.embed})) ||
         failed(checkElements(config, "n_embd", "3 x n_embd x n_embd",
                              {3, gpt.embed, gpt.embed})) ||
         failed(checkElements(config, "n_inner", "n_inner x n_embd",
                              {gpt.feedForward, gpt.embed})) ||
         failed(checkElements(
             config, "n_embd",
             "sequences x sequence length x the widest activation",
             {microbatch.sequences * microbatch.sequenceLength, widest})));
}

static std::unique_ptr<ModelBuilder>
readGPT2(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderConfig gpt = readKeys(config);
  int64_t positions = config.size("n_positions", 1024);
  if (!config.failed())
    checkSizes(config, gpt, positions, microbatch);
  if (!config.failed() && positions < microbatch.sequenceLength)
    config.error("n_positions")
        << "expected at least the sequence length, "
        << microbatch.sequenceLength << ", got " << positions;
  ignoreDropout(config);
  return std::make_unique<GPT2Builder>(gpt, positions, module, microbatch);
}

static constexpr NeutralKey gpt2Keys[] = {
    {"n_ctx", NeutralKey::Any},                   // an older `n_positions`
    {"reorder_and_upcast_attn", NeutralKey::Any}, // scores are f32 in any case
    {"n_special", NeutralKey::Zero},
    {"predict_special_tokens", NeutralKey::Any},
    {"output_past", NeutralKey::Any},  // an older `use_cache`
    {"summary_type", NeutralKey::Any}, // heads that classify
    {"summary_use_proj", NeutralKey::Any},
    {"summary_activation", NeutralKey::Any},
    {"summary_proj_to_labels", NeutralKey::Any},
    {"summary_first_dropout", NeutralKey::Any},
};

const Family mlir::rota::gpt2Family = {
    .modelType = "gpt2",
    .description = "layer norms, learned positions, one projection for query, "
                   "key and value, GELU",
    .languageModel = "GPT2LMHeadModel",
    .bareModel = "GPT2Model",
    .neutralKeys = gpt2Keys,
    .read = readGPT2};
