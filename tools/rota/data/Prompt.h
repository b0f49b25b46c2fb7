// SPDX-License-Identifier: Apache-2.0
//
// The text of samples: a prompt as tokens, and tokens as text.
#ifndef ROTA_TOOLS_ROTA_PROMPT_H
#define ROTA_TOOLS_ROTA_PROMPT_H

#include "runtime/tokenizer/TextStream.h"
#include "tools/rota/options/RunOptions.h"

namespace rota {

/// A prompt that was given as text, under the option `name`.
class Prompt {
public:
  /// Opens the tokenizer of the options, or the one in the model's folder.
  /// Throws InputError that says how to do without one.
  Prompt(const RunOptions &options, const std::string &name,
         const std::string &text);

  /// With the tokens that the tokenizer's template puts before a document,
  /// unless the options leave them out.
  const std::vector<int32_t> &tokens() const { return encoded; }
  const std::string &text() const { return given; }
  /// The end token of the tokenizer, if it has one.
  std::optional<int32_t> endToken() const;

  /// The text of tokens that follow, as they come. A token that the tokenizer
  /// does not have has no text: vocabularies of models may be larger.
  class Continuation {
  public:
    explicit Continuation(const Prompt &prompt);
    std::string add(std::span<const int32_t> tokens);
    std::string finish() { return stream.finish(); }

  private:
    const Prompt &prompt;
    TextStream stream;
  };

private:
  std::unique_ptr<Tokenizer> tokenizer;
  std::string given;
  std::vector<int32_t> encoded;
  bool hidesSpecial;
};

/// Sets the tokens that end continuations where the options leave them open: as
/// the folder of the model says, or else the tokenizer's, or else the tokenizer
/// of the prompt, which may be null. Throws InputError.
void findStopTokens(RunOptions &options, const Prompt *prompt);

/// Starts a process that answers SampleText (runtime/train/sample), until the
/// trainer has ended; returns its two descriptors, which only becomeProgram
/// hands on. Throws RunError.
std::vector<int64_t> startDecoder(const Prompt &prompt);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PROMPT_H
