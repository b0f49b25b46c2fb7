// SPDX-License-Identifier: Apache-2.0
//
// The model continues a prompt, by the forward that training runs.
#ifndef ROTA_RUNTIME_TRAIN_SAMPLE_SAMPLER_H
#define ROTA_RUNTIME_TRAIN_SAMPLE_SAMPLER_H

#include "runtime/train/options/SampleOptions.h"
#include "runtime/train/step/Executor.h"

#include <functional>

namespace rota {

/// Throws InputError unless the program `samples` and the prompt fits its
/// window, which is a sequence, and its vocabulary, as tokens that stop must.
void requirePrompt(const Program &program, const SampleOptions &options);

/// A run of the timeline for each token: sequence 0 of microbatch 0 has the
/// text, or once that is longer than a sequence its end. What follows the text
/// in the sequence has no influence on causal models; there the text begins
/// again, as in the other sequences of the microbatch.
class Sampler {
public:
  /// `options` has a prompt that requirePrompt accepts.
  Sampler(Rank &rank, Executor &executor, const SampleOptions &options,
          int64_t seed)
      : rank(rank), executor(executor), options(options), seed(seed) {}

  /// Whether step `t` of the training is followed by a sample.
  bool follows(int64_t t, bool last) const {
    return options.isOn() &&
           (last || (options.interval > 0 && t % options.interval == 0));
  }

  /// The tokens after the prompt, the same on all ranks: `tell` gets each as
  /// it comes. Draws are those of (seed, "sample", `step`). A token that stops
  /// is the last one. Less than all where a signal has ended the run. Every
  /// rank calls, while its device has no step to do. Throws RunError where a
  /// logit is not finite.
  std::vector<int32_t> run(int64_t step,
                           const std::function<void(int32_t)> &tell = {});

private:
  std::optional<int32_t> next(const std::vector<int32_t> &text, double uniform);

  Rank &rank;
  Executor &executor;
  const SampleOptions &options;
  const int64_t seed;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_SAMPLE_SAMPLER_H
