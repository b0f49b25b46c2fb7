// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a Llama model, in the words of model hubs.
#ifndef ROTA_MODELS_LLAMACONFIG_H
#define ROTA_MODELS_LLAMACONFIG_H

#include "models/Config.h"

#include "llvm/ADT/SmallVector.h"

namespace mlir::rota {

/// How rotary frequencies are stretched to reach longer contexts.
struct RopeScaling {
  enum class Kind { None, Linear, Llama3 } kind = Kind::None;
  double factor = 1.0;
  // Llama3: bounds of the band between kept and divided frequencies, in turns
  // over the original context.
  double lowFrequencyFactor = 1.0, highFrequencyFactor = 4.0;
  double originalContext = 0.0;
};

struct LlamaConfig {
  int64_t vocabulary, embed, feedForward, layers;
  int64_t heads, keyHeads, headSize;
  double normEpsilon, initializerRange, ropeTheta;
  RopeScaling scaling;
  bool tied; // the head's weight is the embedding table

  /// Reads and checks the configuration; reports every mistake, and every key
  /// that would change the computation in a way that is not supported.
  static FailureOr<LlamaConfig> read(Config &config);
};

/// The headSize / 2 rotary frequencies in radians per position, in f64:
/// theta^(-2i / headSize) (Su et al. 2021, section 3.2.2), stretched.
SmallVector<double> rotaryFrequencies(const LlamaConfig &config);

} // namespace mlir::rota

#endif // ROTA_MODELS_LLAMACONFIG_H
