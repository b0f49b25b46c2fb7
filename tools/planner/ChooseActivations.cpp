// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/ChooseActivations.h"

#include "runtime/program/Text.h"
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
  auto &schedule = request.compiler.schedule;
  int64_t &tried = other.compiler.schedule.activations;
  std::optional<int64_t> bytes = plannedBytes(other, error);
  if (!bytes || *bytes <= memory)
    return bytes.has_value();
  // Too few have no timeline, too many do not fit.
  int64_t fewest = 0, most = schedule.repeats * schedule.microbatches;
  std::optional<int64_t> least = bytes;
  while (most - fewest > 1) {
    tried = (fewest + most) / 2;
    bytes = plannedBytes(other, error);
    if (bytes)
      least = std::min(*least, *bytes);
    if (bytes && *bytes <= memory)
      schedule.activations = tried;
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
