// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Evaluation.h"
#include "runtime/Error.h"
#include "runtime/train/Data.h"
#include "runtime/train/Gather.h"

#include <fmt/format.h>

namespace rota {

/// Of RunState::values: loss and step of the best validation.
static constexpr const char *kBestValidation = "best_validation";

double Evaluation::run(int64_t t) {
  Loss total;
  int64_t rounds = rank.program().rounds, runs = options.steps * rounds;
  for (int64_t i = 0; i < runs; ++i) {
    loadBatch(rank, batches, Split::Validation, i / rounds, i % rounds);
    executor.run(Executor::Mode::Evaluate);
    Loss loss = gatherLoss(rank);
    total.sum += loss.sum;
    total.weight += loss.weight;
    total.auxiliary += loss.auxiliary / static_cast<double>(runs);
  }
  double mean = total.mean();
  if (!least || mean < least->loss)
    least = {mean, t};
  return mean;
}

void Evaluation::save(RunState &state) const {
  if (least)
    state.values[kBestValidation] = {least->loss,
                                     static_cast<double>(least->step)};
}

void Evaluation::restore(const RunState &state) {
  auto found = state.values.find(kBestValidation);
  if (found == state.values.end())
    return;
  const std::vector<double> &numbers = found->second;
  if (numbers.size() != 2)
    throw InputError(
        fmt::format("checkpoint value '{}': expected 2 numbers, got {}",
                    kBestValidation, numbers.size()));
  least = {numbers[0], static_cast<int64_t>(numbers[1])};
}

} // namespace rota
