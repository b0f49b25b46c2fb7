// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding as configurations of all families describe it.
#ifndef ROTA_MODELS_ROTARY_H
#define ROTA_MODELS_ROTARY_H

#include "models/Config.h"

#include "llvm/ADT/SmallVector.h"

namespace mlir::rota {

/// A way to stretch frequencies for longer contexts; the table of kinds is in
/// Rotary.cpp.
struct RotaryScaling;

/// Names of the rotary settings in a configuration, and the theta of a
/// configuration without one.
struct RotaryKeys {
  StringRef parameters = "rope_parameters"; // the object of transformers 5
  // The older spelling; without the second key it has no scaling.
  StringRef theta = "rope_theta", scaling = "rope_scaling";
  double fallback = 10000.0;
};

struct Rotary {
  double theta = 10000.0;
  const RotaryScaling *scaling = nullptr; // null: frequencies stay
  double factor = 1.0;
  // llama3: bounds of the band between kept and divided frequencies, in turns
  // over the original context.
  double lowFrequencyFactor = 1.0, highFrequencyFactor = 4.0;
  double originalContext = 0.0;
  int64_t length = 0; // tokens of a sequence
  // yarn: turns over the original context above and below which frequencies are
  // kept and divided, and whether the bounds are rounded to whole pairs.
  double fastTurns = 32.0, slowTurns = 1.0;
  bool truncates = true;
  // proportional: the share of a head's pairs that turn, the first ones.
  double share = 1.0;
  /// Factor of all cosines and sines: the square root of attention's
  /// temperature.
  double scale = 1.0;
  /// YaRN's scale with the weight `mscale_all_dim`, where a file has that.
  /// DeepSeek multiplies scores by its square.
  double temperature = 1.0;

  /// Reads both spellings that hubs use, for sequences of `length` tokens. A
  /// file that has both must give them equal values. Reports every mistake.
  static Rotary read(Config &config, int64_t length,
                     const RotaryKeys &keys = {});

  /// Stretches by YaRN with its own number of turns and scale.
  void setYarn(double factor, double originalContext, bool truncates);

  /// The headSize / 2 frequencies in radians per position, in f64:
  /// theta^(-2i / headSize) (Su et al. 2021, section 3.2.2), stretched.
  SmallVector<double> frequencies(int64_t headSize) const;
};

} // namespace mlir::rota

#endif // ROTA_MODELS_ROTARY_H
