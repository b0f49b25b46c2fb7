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

/// The values of keys that a configuration of the family may lack.
struct DecoderDefaults {
  double normEpsilon = 1e-6;
  bool tied = false;
  std::optional<int64_t> headSize; // not given: embed / heads
};

struct DecoderConfig {
  int64_t vocabulary, embed, feedForward, layers;
  int64_t heads, keyHeads, headSize;
  double normEpsilon, initializerRange;
  Rotary rotary;
  bool tied; // the head's weight is the embedding table

  /// Reads the keys that most families have in common and checks sizes for a
  /// microbatch. Reports every mistake: `config.failed()` says whether there
  /// was one.
  static DecoderConfig read(Config &config, const Microbatch &microbatch,
                            const DecoderDefaults &defaults = {});
};

class DecoderBuilder : public ModelBuilder {
public:
  DecoderBuilder(const DecoderConfig &config, ModuleOp module,
                 const Microbatch &microbatch)
      : ModelBuilder(module, microbatch), config(config) {}
  virtual ~DecoderBuilder() = default;

  /// Builds the whole module.
  void build();

protected:
  /// Declares the parameters of a layer.
  virtual void declareLayer();
  /// A layer from its input to its output, [B, S, E].
  virtual Value buildLayer(Value x);
  /// The query, key or value of `x` before the rotation, [B, S, heads, D], by
  /// the parameters whose names begin with `name`.
  virtual Value projectHeads(Value x, StringRef name, int64_t heads);

  /// Declares weights of projections, and a norm's gain of `width` elements.
  void declareAttention();
  void declareFeedForward();
  void declareGain(StringRef name, int64_t width);

  /// Self-attention of `x` after the output projection.
  Value attention(Value x);
  /// The feed-forward of `x`.
  Value feedForward(Value x);

  /// Declares embedding table, final norm and, unless it is tied, the head.
  void declareEnds();
  /// Builds `embed`: rows of the table.
  void buildEmbed();
  /// Builds `loss`: final norm, head, cross-entropy and, where there is one,
  /// z-loss.
  void buildLoss();

  /// RMS norm of `x` along its last dimension with the gain of that name, read
  /// in f32.
  Value norm(Value x, StringRef gain);
  /// [B, S, heads * D] as [B, S, heads, D].
  Value splitHeads(Value x, int64_t heads);
  /// Cosines and sines of the rotary settings: [S, D / 2, 2].
  Value rotaryTable();
  Value rotate(Value x, Value table);
  /// Causal attention: [B, S, H, D].
  Value attend(Value query, Value key, Value value);
  /// SwiGLU(x Wgate, x Wup) Wdown: [B, S, E].
  Value gatedFeedForward(Value x, StringRef gate, StringRef up, StringRef down);

  const DecoderConfig &config;

private:
  RankedTensorType tokensType();
  /// The sum of the squares of `logsumexp` [B, S], a term of the loss.
  Value zLoss(Value logsumexp);
};

} // namespace mlir::rota

#endif // ROTA_MODELS_DECODER_H
