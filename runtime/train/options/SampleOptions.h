// SPDX-License-Identifier: Apache-2.0
//
// How the model continues a prompt.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_SAMPLEOPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_SAMPLEOPTIONS_H

#include "runtime/train/options/OptionRows.h"

namespace rota {

inline constexpr const char *kStopTokens = "stop-tokens";

struct SampleOptions {
  std::vector<int64_t> prompt; // tokens; empty: none
  int64_t interval = 0;        // steps; 0: after the last one
  int64_t tokens = 100;        // of the continuation, at most
  std::vector<int64_t> stops;  // tokens that end it before; empty: none
  double temperature = 0.0;    // 0: the most likely token
  double topP = 1.0;
  // Descriptors to read from and to write to: see SampleText. Empty: none.
  std::vector<int64_t> decoder;

  bool isOn() const { return !prompt.empty(); }
};

OptionRows sampleRows(SampleOptions &options);
OptionMistake checkSampleOptions(const SampleOptions &options);
/// Refuses options for samples without a prompt.
OptionMistake checkPrompt(const SampleOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_SAMPLEOPTIONS_H
