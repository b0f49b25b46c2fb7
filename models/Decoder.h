// SPDX-License-Identifier: Apache-2.0
//
// The parts that families of decoder-only transformers share: the sizes in the
// words of model hubs, and the blocks around and inside a layer, which are
// those of Llama. A family overrides the parts in which it differs, in its own
// file.
//
// Shapes: B sequences of S tokens, E embed, H heads of D, K key-value heads, F
// feed-forward, V vocabulary.
#ifndef ROTA_MODELS_DECODER_H
#define ROTA_MODELS_DECODER_H

#include "models/ModelBuilder.h"
#include "models/Rotary.h"

namespace mlir::rota {

/// One kind of layer of a model.
struct LayerKind {
  StringRef name = "decoder";                   // its symbol in the stack
  std::optional<int64_t> window = std::nullopt; // window of its attention
  Rotary rotary = {};
  bool sparse = false; // a mixture of experts is the feed-forward
};

/// The values of keys that a configuration of the family may lack.
struct DecoderDefaults {
  double normEpsilon = 1e-6;
  bool tied = false;
  std::optional<int64_t> headSize; // not given: embed / heads
  std::optional<int64_t> keyHeads; // not given: as many as heads
  StringRef activation = "silu";
  /// Of `attention_bias`. Not given: the family's files have no such key.
  std::optional<bool> attentionBias;
  RotaryKeys rotary = {};
};

/// The names of the parameters around the layers, and of their stack.
struct DecoderNames {
  StringRef table = "model.embed_tokens.weight";
  StringRef norm = "model.norm.weight";
  StringRef head = "lm_head.weight";
  StringRef stack = "model.layers";
};

/// A module of multi-token prediction, see Prediction.cpp.
struct Prediction {
  LayerKind kind;     // kind of its layer
  double coefficient; // factor of its loss; not 0
};

struct DecoderConfig {
  int64_t vocabulary, embed, feedForward, layers;
  int64_t heads, keyHeads, headSize;
  StringRef headsKey = "num_attention_heads";
  StringRef keyHeadsKey = "num_key_value_heads";
  double normEpsilon, initializerRange;
  double attentionScale;         // factor of a query's product with a key
  std::optional<double> softCap; // soft cap of attention's scores
  ActivationKind activation;
  bool tied; // the head's weight is the embedding table
  /// Biases of query, key and value; of attention's output projection; of the
  /// projections of a dense feed-forward.
  bool headBias = false, outBias = false, feedForwardBias = false;
  /// Each is that of one layer or more.
  SmallVector<LayerKind> kinds = {LayerKind()};
  SmallVector<size_t> kindOf; // by layer; empty: all have the first kind
  std::optional<Prediction> prediction;

  /// Makes the layers for which `isSparse` is true, and those for which it is
  /// not, two kinds that are alike otherwise.
  void setSparse(llvm::function_ref<bool(int64_t)> isSparse);
  /// Reads `num_nextn_predict_layers`. The kinds of layers are known; the layer
  /// of the module is of the last one.
  void readPrediction(Config &config, const Microbatch &microbatch);

  /// Reads the keys that most families have in common and checks sizes for a
  /// microbatch. Reports every mistake: `config.failed()` says whether there
  /// was one.
  static DecoderConfig read(Config &config, const Microbatch &microbatch,
                            const DecoderDefaults &defaults = {});
};

class DecoderBuilder : public ModelBuilder {
public:
  DecoderBuilder(const DecoderConfig &config, ModuleOp module,
                 const Microbatch &microbatch, const DecoderNames &names = {})
      : ModelBuilder(module, microbatch), config(config), names(names) {
    setAxisKey("heads", config.headsKey);
    setAxisKey("kv_heads", config.keyHeadsKey);
  }

  void build() override;

protected:
  /// Declares the parameters of a layer of the kind `kind()`.
  virtual void declareLayer();
  /// A layer of the kind `kind()` from its input to its output, [B, S, E].
  virtual Value buildLayer(Value x);
  /// The query, key or value of `x` before the rotation, [B, S, heads, D], by
  /// the parameters whose names begin with `name`.
  virtual Value projectHeads(Value x, StringRef name, int64_t heads);
  /// It before it is split into heads, [B, S, heads * D].
  Value projectFlat(Value x, StringRef name, int64_t heads);

  /// Declares the parameters of a norm of `width` elements, whose gain has that
  /// name.
  virtual void declareNorm(StringRef gain, int64_t width);
  /// The norm of `x` along its last dimension with the gain of that name.
  virtual Value norm(Value x, StringRef gain);
  /// The RMS norm of `x` along its last dimension with the gain of that name.
  Value rmsNorm(Value x, StringRef gain, double epsilon);
  /// The first activation [B, S, E] out of the rows of the embedding table.
  virtual Value embedded(Value rows) { return rows; }
  /// The logits [B, S, V] of the loss out of the head's product.
  virtual Value cappedLogits(Value product) { return product; }

  /// Declares weights of projections.
  virtual void declareAttention();
  virtual void declareFeedForward();
  /// Declares the parameters of a gated feed-forward whose names begin with
  /// `prefix` and whose inner width is `inner`.
  void declareGated(StringRef prefix, int64_t inner);

  /// The output projection of attention's result [B, S, width].
  Value projectOut(Value context, int64_t width);
  /// A score of each head that has no value, [H] f32; null: none.
  virtual Value sinks() { return {}; }

  /// Declares norms of each head's query and key.
  void declareHeadNorms();
  /// The heads of `name` by `projectHeads`, normalized unless they are values.
  Value headNorm(Value heads, StringRef name);

  /// Self-attention of `x` after the output projection.
  virtual Value attention(Value x);
  /// The feed-forward of `x`.
  virtual Value feedForward(Value x);

  /// Declares embedding table, final norm and, unless it is tied, the head.
  virtual void declareEnds();
  /// Builds `embed`: rows of the table.
  void buildEmbed();
  /// Builds `loss`: final norm, head, cross-entropy and, where there are some,
  /// z-loss and prediction.
  void buildLoss();

  /// [B, S, heads * D] as [B, S, heads, D].
  Value splitHeads(Value x, int64_t heads);
  /// Cosines and sines of the rotary settings: [S, D / 2, 2].
  Value rotaryTable();
  Value rotate(Value x, Value table);
  /// Causal attention, in a window where the kind of layer has one: [B, S, H,
  /// D].
  Value attend(Value query, Value key, Value value);
  /// (f(x Wgate) * x Wup) Wdown, f the activation function, of the weights of
  /// `declareGated`: [B, S, E].
  Value gated(Value x, StringRef prefix, int64_t inner);

  /// The kind of the layer that is being built.
  const LayerKind &kind() const { return *openKind; }

  const DecoderConfig config;
  const DecoderNames names;

private:
  void buildKind(const LayerKind &kind);
  /// `x` [B, S, in] times the transpose of "NAME.weight", and plus "NAME.bias"
  /// where there is one: [B, S, out].
  Value projectBiased(Value x, const Twine &name, int64_t out, int64_t in,
                      bool hasBias);
  RankedTensorType tokensType();
  /// The logits [B, S, V] of `normed` [B, S, E].
  Value headOf(Value normed);
  /// Which of the targets [B, S] count, as 1 and 0 [B, S] f32, and their
  /// number, a scalar, out of targets alone.
  std::pair<Value, Value> countTargets(Value targets);
  /// The sum of the squares of `logsumexp` [B, S], a term of the loss.
  Value zLoss(Value logsumexp);

  // The module of prediction.
  std::string predictionPrefix();
  void declarePrediction();
  /// The sum of the losses of the token after each target out of `normed`
  /// [B, S, E], what the head reads, and targets [B, S]; a term of the loss.
  Value predictionLoss(Value normed, Value targets);
  /// The module's hidden state [B, S, E] before the head.
  Value predictedState(Value normed, Value targets, Value counted);
  /// `x` [B, S, ...] shifted by one along S, after a 0.
  Value shifted(Value x);

  const LayerKind *openKind = nullptr;
};

/// Reads the name of an activation function.
ActivationKind readActivation(Config &config, StringRef key,
                              StringRef fallback);

} // namespace mlir::rota

#endif // ROTA_MODELS_DECODER_H
