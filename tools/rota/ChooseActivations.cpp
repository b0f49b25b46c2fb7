// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/ChooseActivations.h"

#include "runtime/program/Text.h"
#include "tools/rota/ComparePolicies.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

/// The most bytes that a rank takes in the plan of `options`; nothing without a
/// plan, with the reason in `error`.
static std::optional<int64_t> plannedBytes(const RunOptions &options,
                                           std::string &error) {
  PolicyPlan plan;
  planPolicy(options, plan);
  error = plan.error;
  if (!error.empty())
    return std::nullopt;
  int64_t most = 0;
  for (const StageNeed &need : plan.stages)
    most = std::max(most, need.bytes);
  return most;
}

bool chooseActivations(RunOptions &options, std::string &error) {
  RunOptions other = options;
  std::optional<int64_t> bytes = plannedBytes(other, error);
  if (!bytes || *bytes <= options.memory)
    return bytes.has_value();
  // Too few have no timeline, too many do not fit.
  int64_t fewest = 0, most = options.repeats * options.microbatches;
  std::optional<int64_t> least = bytes;
  while (most - fewest > 1) {
    other.activations = (fewest + most) / 2;
    bytes = plannedBytes(other, error);
    if (bytes)
      least = std::min(*least, *bytes);
    if (bytes && *bytes <= options.memory)
      options.activations = other.activations;
    bool isTooMany = bytes && *bytes > options.memory;
    (isTooMany ? most : fewest) = other.activations;
  }
  error =
      fmt::format("'memory': expected at least about {} bytes, which a rank "
                  "takes with the fewest activations, got {}",
                  grouped(*least), options.memoryText);
  return options.activations > 0;
}

} // namespace rota
