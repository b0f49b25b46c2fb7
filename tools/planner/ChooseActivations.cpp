// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/ChooseActivations.h"

#include "runtime/text/Text.h"
#include "tools/planner/ComparePolicies.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

/// The most bytes that a rank takes in the plan of `request`; nothing without a
/// plan, with the reason in `error`.
static std::optional<int64_t> plannedBytes(const PlanRequest &request,
                                           std::string &error) {
  PolicyPlan plan;
  planPolicy(request, plan);
  error = plan.error;
  if (!error.empty())
    return std::nullopt;
  int64_t most = 0;
  for (const StageNeed &need : plan.stages)
    most = std::max(most, need.bytes);
  return most;
}

bool chooseActivations(PlanRequest &request, std::string &error) {
  PlanRequest other = request;
  int64_t memory = request.compiler.memory;
  std::optional<int64_t> bytes = plannedBytes(other, error);
  if (!bytes || *bytes <= memory)
    return bytes.has_value();
  // In activations of a chunk. Too few have no timeline, too many do not fit.
  auto &schedule = request.compiler.schedule;
  int64_t repeats = std::max<int64_t>(schedule.repeats, 1);
  int64_t fewest = repeats - 1, most = repeats * schedule.microbatches;
  std::optional<int64_t> least = bytes;
  while (most - fewest > 1) {
    int64_t tried = (fewest + most) / 2;
    double &activations = other.compiler.schedule.activations;
    activations = double(tried) / double(repeats);
    bytes = plannedBytes(other, error);
    if (bytes)
      least = std::min(*least, *bytes);
    if (bytes && *bytes <= memory)
      schedule.activations = activations;
    bool isTooMany = bytes && *bytes > memory;
    (isTooMany ? most : fewest) = tried;
  }
  error =
      fmt::format("'memory': expected at least about {} bytes, which a rank "
                  "takes with the fewest activations, got {}",
                  grouped(*least), request.compiler.memoryText);
  return schedule.activations > 0;
}

} // namespace rota
