// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/BestValidation.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rota {

/// In RunState::values: loss and step.
static constexpr const char *kName = "best_validation";

std::optional<BestValidation> bestValidation(const RunState &state) {
  auto found = state.values.find(kName);
  if (found == state.values.end())
    return std::nullopt;
  const std::vector<double> &numbers = found->second;
  if (numbers.size() != 2 || !(numbers[1] >= 0.0 && numbers[1] <= kMostSteps))
    throw InputError(fmt::format(
        "checkpoint value '{}': expected a loss and a step, got [{}]", kName,
        fmt::join(numbers, ", ")));
  return BestValidation{numbers[0], static_cast<int64_t>(numbers[1])};
}

void setBestValidation(RunState &state, const BestValidation &best) {
  state.values[kName] = {best.loss, static_cast<double>(best.step)};
}

} // namespace rota
