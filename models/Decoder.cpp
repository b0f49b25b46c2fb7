// SPDX-License-Identifier: Apache-2.0
#include "models/Decoder.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

/// Rotary frequencies stand in the IR one by one.
static constexpr int64_t maxHeadSize = 65536;

/// The functions by their names in transformers, some of which mean the same.
static constexpr std::pair<StringLiteral, ActivationKind> activations[] = {
    {"silu", ActivationKind::Silu},
    {"swish", ActivationKind::Silu},
    {"gelu", ActivationKind::Gelu},
    {"gelu_new", ActivationKind::GeluTanh},
    {"gelu_pytorch_tanh", ActivationKind::GeluTanh},
};

ActivationKind mlir::rota::readActivation(Config &config, StringRef key,
                                          StringRef fallback) {
  std::string name = config.text(key, fallback.str());
  for (auto [known, kind] : activations)
    if (known == name)
      return kind;
  if (!config.failed()) {
    auto error = config.error(key);
    error << "expected one of ";
    llvm::interleaveComma(activations, error,
                          [&](auto &row) { error << '"' << row.first << '"'; });
    error << ", got \"" << name << "\"; other activations are not supported";
  }
  return ActivationKind::Silu;
}

static void checkHeads(Config &config, const DecoderConfig &decoder,
                       bool hasHeadSize) {
  if (!hasHeadSize && decoder.embed % decoder.heads != 0)
    config.error("num_attention_heads")
        << "expected a divisor of 'hidden_size', got " << decoder.heads
        << " and " << decoder.embed;
  if (decoder.heads % decoder.keyHeads != 0)
    config.error("num_key_value_heads")
        << "expected a divisor of 'num_attention_heads', got "
        << decoder.keyHeads << " and " << decoder.heads;
  StringRef key = config.find("head_dim") ? "head_dim" : "hidden_size";
  if (decoder.headSize % 2 != 0)
    config.error(key) << "expected an even head size for rotary embedding, got "
                      << decoder.headSize;
  if (decoder.headSize > maxHeadSize)
    config.error(key) << "expected a head size of at most " << maxHeadSize
                      << ", got " << decoder.headSize;
}

/// Checks products of sizes in an order in which none overflows.
static LogicalResult checkSizes(Config &config, const DecoderConfig &decoder,
                                const Microbatch &microbatch) {
  if (failed(checkElements(config, "vocab_size", "vocab_size x hidden_size",
                           {decoder.vocabulary, decoder.embed})) ||
      failed(checkElements(config, "num_attention_heads",
                           "num_attention_heads x head_dim x hidden_size",
                           {decoder.heads, decoder.headSize, decoder.embed})) ||
      failed(checkElements(config, "intermediate_size",
                           "intermediate_size x hidden_size",
                           {decoder.feedForward, decoder.embed})))
    return failure();
  int64_t widest =
      std::max({decoder.vocabulary, decoder.embed, decoder.feedForward,
                decoder.heads * decoder.headSize});
  return checkElements(
      config, "hidden_size",
      "sequences x sequence length x the widest activation",
      {microbatch.sequences * microbatch.sequenceLength, widest});
}

DecoderConfig DecoderConfig::read(Config &config, const Microbatch &microbatch,
                                  const DecoderDefaults &defaults) {
  DecoderConfig decoder;
  decoder.vocabulary = config.size("vocab_size");
  decoder.embed = config.size("hidden_size");
  decoder.feedForward = config.size("intermediate_size");
  decoder.layers = config.size("num_hidden_layers", {}, Config::maxLayers);
  decoder.heads = config.size(decoder.headsKey);
  // Null means as many as heads in every family.
  if (!config.find(decoder.keyHeadsKey) &&
      (config.has(decoder.keyHeadsKey) || !defaults.keyHeads)) {
    decoder.keyHeads = decoder.heads;
    decoder.keyHeadsKey = decoder.headsKey;
  } else {
    decoder.keyHeads = config.size(decoder.keyHeadsKey, defaults.keyHeads);
  }
  decoder.headSize =
      config.size("head_dim", defaults.headSize.value_or(std::max<int64_t>(
                                  1, decoder.embed / decoder.heads)));
  decoder.normEpsilon = config.share("rms_norm_eps", defaults.normEpsilon);
  decoder.initializerRange = config.share("initializer_range", 0.02);
  decoder.attentionScale = 1.0 / std::sqrt(double(decoder.headSize));
  decoder.activation =
      readActivation(config, "hidden_act", defaults.activation);
  decoder.tied = config.flag("tie_word_embeddings", defaults.tied);
  if (defaults.attentionBias)
    decoder.headBias = decoder.outBias =
        config.flag("attention_bias", *defaults.attentionBias);
  decoder.kinds.front().rotary =
      Rotary::read(config, microbatch.sequenceLength, defaults.rotary);
  if (!config.failed())
    checkHeads(config, decoder,
               config.find("head_dim") || defaults.headSize.has_value());
  if (!config.failed())
    (void)checkSizes(config, decoder, microbatch);
  return decoder;
}

void DecoderConfig::setSparse(llvm::function_ref<bool(int64_t)> isSparse) {
  LayerKind kind = kinds.front();
  kinds = {kind, kind};
  kinds[0].name = "dense";
  kinds[1].name = "sparse";
  kinds[1].sparse = true;
  for (int64_t layer = 0; layer < layers; ++layer)
    kindOf.push_back(isSparse(layer));
}

RankedTensorType DecoderBuilder::tokensType() {
  return tensor({microbatch.sequences, length()}, getI32Type());
}

void DecoderBuilder::declareEnds() {
  Attribute init = normal(config.initializerRange);
  param(names.table, {config.vocabulary, config.embed}, {"vocab", "embed"},
        init);
  declareNorm(names.norm, config.embed);
  if (!config.tied)
    linear(names.head, {config.vocabulary, config.embed}, {"vocab", "embed"},
           init);
}

void DecoderBuilder::buildEmbed() {
  RankedTensorType type = activation({config.embed});
  Value tokens =
      beginFunction(ModelPart::Embed, {{Role::Tokens, tokensType()},
                                       {Role::OutputActivation, type}})
          .one(Role::Tokens);
  Value table = read(names.table, {config.vocabulary, config.embed});
  Value rows = EmbeddingOp::create(*this, type, tokens, table);
  finish({{Role::OutputActivation, embedded(rows)}});
}

void DecoderBuilder::buildLoss() {
  beginLoss();
  auto scalar = tensor({}, getF32Type());
  RoleValues<Type> types = {{Role::InputActivation, activation({config.embed})},
                            {Role::Targets, tokensType()},
                            {Role::LossSum, scalar},
                            {Role::LossWeight, scalar}};
  size_t terms = (microbatch.zLoss != 0) + config.prediction.has_value();
  types.setAll(Role::LossTerm, SmallVector<Type>(terms, scalar));
  auto arguments = beginFunction(ModelPart::Loss, types);
  Value targets = arguments.one(Role::Targets);
  Value normed = norm(arguments.one(Role::InputActivation), names.norm);
  Value logits = named("logits", headOf(normed));
  auto logsumexp = tensor({microbatch.sequences, length()}, getF32Type());
  auto loss =
      CrossEntropyOp::create(*this, scalar, scalar, logsumexp, logits, targets);
  // The cotangents of auxiliary losses need the number before any forward has
  // run.
  Value weight =
      hasAuxiliaryLoss() ? countTargets(targets).second : loss.getWeight();
  SmallVector<Value> sums;
  if (microbatch.zLoss != 0) {
    markLossTerm(sums.size(), "z_loss", microbatch.zLoss);
    sums.push_back(zLoss(loss.getLogsumexp()));
  }
  if (config.prediction) {
    markLossTerm(sums.size(), "mtp", config.prediction->coefficient);
    sums.push_back(predictionLoss(normed, targets));
  }
  RoleValues<Value> results = {{Role::LossSum, loss.getSum()},
                               {Role::LossWeight, weight}};
  results.setAll(Role::LossTerm, sums);
  finish(results);
}

Value DecoderBuilder::headOf(Value normed) {
  return cappedLogits(project(normed, config.tied ? names.table : names.head,
                              config.vocabulary, config.embed));
}

/// They are logsumexp and weight of the cross-entropy of a vocabulary whose one
/// part has the logsumexp 1 for every token: that of a target that does not
/// count is 0.
std::pair<Value, Value> DecoderBuilder::countTargets(Value targets) {
  auto rows = tensor({microbatch.sequences, length()}, getF32Type());
  auto parts = rows.clone({microbatch.sequences, length(), 2});
  Value ones = splat(parts, 1.0);
  auto scalar = tensor({}, getF32Type());
  auto merged =
      CrossEntropyMergeOp::create(*this, scalar, scalar, rows, ones, targets);
  return {merged.getLogsumexp(), merged.getWeight()};
}

/// The logsumexp of a token that does not count is 0.
Value DecoderBuilder::zLoss(Value logsumexp) {
  Value squares = arith::MulFOp::create(*this, logsumexp, logsumexp);
  return ReduceOp::create(*this, tensor({}, getF32Type()), ReduceKind::Sum,
                          squares, ArrayRef<int64_t>{0, 1});
}

Value DecoderBuilder::norm(Value x, StringRef gain) {
  return rmsNorm(x, gain, config.normEpsilon);
}

Value DecoderBuilder::rmsNorm(Value x, StringRef gain, double epsilon) {
  int64_t width = cast<RankedTensorType>(x.getType()).getShape().back();
  return RMSNormOp::create(*this, x.getType(), x, readF32(gain, {width}),
                           getF64FloatAttr(epsilon), /*centered=*/UnitAttr());
}

Value DecoderBuilder::splitHeads(Value x, int64_t heads) {
  return ReshapeOp::create(*this, activation({heads, config.headSize}), x);
}

Value DecoderBuilder::rotaryTable() {
  auto type =
      tensor({microbatch.sequenceLength, config.headSize / 2, 2}, getF32Type());
  return RotaryTableOp::create(
      *this, type,
      getDenseF64ArrayAttr(kind().rotary.frequencies(config.headSize)),
      getF64FloatAttr(kind().rotary.scale));
}

Value DecoderBuilder::rotate(Value x, Value table) {
  return RopeOp::create(*this, x.getType(), x, table, documentPositions(),
                        /*inverse=*/UnitAttr());
}

Value DecoderBuilder::attend(Value query, Value key, Value value) {
  AttentionForm form;
  form.scale = config.attentionScale;
  form.softCap = config.softCap;
  form.sinks = sinks();
  form.documents = documentPositions();
  // A window of the whole sequence changes nothing.
  if (kind().window.value_or(length()) < length())
    form.window = kind().window;
  return AttentionOp::create(*this, query, key, value, form).getOutput();
}
