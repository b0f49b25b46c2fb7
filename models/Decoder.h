// SPDX-License-Identifier: Apache-2.0
//
// The parts that families of decoder-only transformers share: the sizes in the
// words of model hubs, and the blocks around and inside a layer. A family
// composes them; its differences stand in its own file.
//
// Shapes: B sequences of S tokens, E embed, H heads of D, K key-value heads, F
// feed-forward, V vocabulary.
#ifndef ROTA_MODELS_DECODER_H
#define ROTA_MODELS_DECODER_H

#include "models/ModelBuilder.h"
#include "models/Rotary.h"

namespace mlir::rota {

struct DecoderConfig {
  int64_t vocabulary, embed, feedForward, layers;
  int64_t heads, keyHeads, headSize;
  double normEpsilon, initializerRange;
  Rotary rotary;
  bool tied; // the head's weight is the embedding table

  /// Reads the keys that most families have in common and checks sizes for a
  /// microbatch. Reports every mistake: `config.failed()` says whether there
  /// was one.
  static DecoderConfig read(Config &config, const Microbatch &microbatch);
};

class DecoderBuilder : public ModelBuilder {
public:
  DecoderBuilder(const DecoderConfig &config, ModuleOp module,
                 const Microbatch &microbatch)
      : ModelBuilder(module, microbatch), config(config) {}

protected:
  /// Declares embedding table, final norm and, unless it is tied, the head.
  void declareEnds();
  /// Builds `embed`: rows of the table.
  void buildEmbed();
  /// Builds `loss`: final norm, head and cross-entropy.
  void buildLoss();

  /// RMS norm of `x` [B, S, E] with the gain of that name, read in f32.
  Value norm(Value x, StringRef gain);
  /// A projection of `x` split into heads: [B, S, heads, D].
  Value projectHeads(Value x, StringRef weight, int64_t heads);
  /// Cosines and sines of the rotary settings: [S, D / 2, 2].
  Value rotaryTable();
  Value rotate(Value x, Value table);
  /// Causal attention: [B, S, H, D].
  Value attend(Value query, Value key, Value value);
  /// x + SwiGLU(x Wgate, x Wup) Wdown without the addition; [B, S, E].
  Value gatedFeedForward(Value x, StringRef gate, StringRef up, StringRef down);

  const DecoderConfig &config;

private:
  RankedTensorType tokensType();
};

} // namespace mlir::rota

#endif // ROTA_MODELS_DECODER_H
