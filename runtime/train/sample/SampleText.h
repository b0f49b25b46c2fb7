// SPDX-License-Identifier: Apache-2.0
//
// A sample, and its text. A trainer has no tokenizer: another process decodes.
#ifndef ROTA_RUNTIME_TRAIN_SAMPLE_SAMPLETEXT_H
#define ROTA_RUNTIME_TRAIN_SAMPLE_SAMPLETEXT_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rota {

/// How the model continues a prompt.
struct Sample {
  std::optional<int64_t> step; // that the weights are of, if any
  std::vector<int64_t> prompt;
  std::vector<int32_t> tokens;     // that follow
  std::optional<std::string> text; // of both, where it is known
};

/// The object of the event `sample`.
nlohmann::ordered_json sampleJson(const Sample &sample);

/// Asks the process at the other ends of two descriptors, which are sockets.
class SampleText {
public:
  /// `decoder`: --sample-decoder; empty: no process.
  explicit SampleText(const std::vector<int64_t> &decoder) : decoder(decoder) {}

  /// The text of the prompt and these tokens; none where no process answers.
  std::optional<std::string> textOf(const std::vector<int32_t> &tokens) const;

private:
  const std::vector<int64_t> &decoder;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_SAMPLE_SAMPLETEXT_H
