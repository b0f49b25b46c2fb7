// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/sample/Sampler.h"
#include "runtime/Error.h"
#include "runtime/random/Philox.h"
#include "runtime/train/Data.h"
#include "runtime/train/Signals.h"
#include "runtime/train/sample/ChooseToken.h"
#include "runtime/train/state/Tensors.h"
#include "runtime/train/step/Gather.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

/// Tokens in a sequence.
static int64_t windowOf(const Program &program) {
  return program.input.shape[1];
}

static void requireKnown(const char *option, const std::vector<int64_t> &tokens,
                         int64_t vocabulary) {
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] >= vocabulary)
      throw InputError(fmt::format("'{}': token {}: expected a number below "
                                   "the vocabulary's {}, got {}",
                                   option, i, vocabulary, tokens[i]));
}

void requirePrompt(const Program &program, const SampleOptions &options) {
  if (program.vocabulary == 0)
    throw InputError("'prompt-tokens': this model's inputs are not tokens");
  if (!program.samples)
    throw InputError("'prompt-tokens': this program was compiled without "
                     "samples (rota compile --samples)");
  auto count = static_cast<int64_t>(options.prompt.size());
  if (int64_t window = windowOf(program); count > window)
    throw InputError(
        fmt::format("'prompt-tokens': expected at most {} tokens, which is the "
                    "sequence length, got {}",
                    window, count));
  requireKnown("prompt-tokens", options.prompt, program.vocabulary);
  requireKnown(kStopTokens, options.stops, program.vocabulary);
}

namespace {

/// The same text at the beginning of every sequence, again and again.
class RepeatedText : public Batches {
public:
  explicit RepeatedText(std::span<const int32_t> text) : text(text) {}

  void fill(Split, int64_t, const Destination &input,
            const Destination &target) const override {
    write(input, [&](int64_t position) {
      return text[static_cast<size_t>(position) % text.size()];
    });
    write(target, [](int64_t) { return -1; });
  }
  bool hasValidation() const override { return false; }
  std::string describe() const override { return "a prompt"; }

private:
  template <typename TokenAt>
  static void write(const Destination &to, TokenAt tokenAt) {
    if (!to.place)
      return;
    auto *out = reinterpret_cast<int32_t *>(to.place);
    int64_t length = to.part.whole[1];
    forEachRun(to.part, 0, to.part.elements(),
               [&](int64_t whole, int64_t inPart, int64_t count) {
                 for (int64_t i = 0; i < count; ++i)
                   out[inPart + i] = tokenAt((whole + i) % length);
               });
  }

  std::span<const int32_t> text;
};

} // namespace

/// The token after the text; none where a signal has come.
std::optional<int32_t> Sampler::next(const std::vector<int32_t> &text,
                                     double uniform) {
  const Program &program = rank.program();
  auto length = std::min(std::ssize(text), windowOf(program));
  std::span<const int32_t> window = std::span(text).last(size_t(length));
  loadAccumulationStep(rank, RepeatedText(window), Split::Validation, 0);
  executor.sample(sampledBlock(program, length - 1));
  std::vector<float> logits = gatherSample(rank, length - 1);
  double token = 0;
  if (rank.number() == 0)
    token = static_cast<double>(chooseToken(logits, options, uniform));
  // Rank 0 has the token; a signal may reach any.
  double interrupted = isInterrupted();
  std::vector<double> all =
      gatherNumbers(rank, rank.everyone(), {token, interrupted});
  for (size_t r = 0; r < all.size(); r += 2)
    if (all[r + 1] != 0.0)
      return std::nullopt;
  return static_cast<int32_t>(all[0]);
}

std::vector<int32_t> Sampler::run(int64_t step,
                                  const std::function<void(int32_t)> &tell) {
  rank.setPosition("sampling");
  RandomStream draws(static_cast<uint64_t>(seed), "sample", step);
  std::vector<int32_t> text(options.prompt.begin(), options.prompt.end());
  size_t prompt = text.size();
  for (int64_t i = 0; i < options.tokens; ++i) {
    // The upper 53 bits, in the middle of their interval.
    double uniform =
        (static_cast<double>(draws.bits(uint64_t(i)) >> 11) + 0.5) * 0x1p-53;
    std::optional<int32_t> token = next(text, uniform);
    if (!token)
      break;
    text.push_back(*token);
    if (tell)
      tell(*token);
    if (std::ranges::find(options.stops, *token) != options.stops.end())
      break;
  }
  text.erase(text.begin(), text.begin() + static_cast<ptrdiff_t>(prompt));
  return text;
}

} // namespace rota
