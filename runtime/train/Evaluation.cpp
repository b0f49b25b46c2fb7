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
  for (int64_t b = 0; b < options.steps; ++b) {
    loadBatch(rank, batches, Split::Validation, b);
    executor.run(Executor::Mode::Evaluate);
    Loss loss = gatherLoss(rank);
    total.sum += loss.sum;
    total.weight += loss.weight;
    total.auxiliary += loss.auxiliary / static_cast<double>(options.steps);
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
