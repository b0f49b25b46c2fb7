// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/Evaluation.h"

#include "runtime/train/step/StepBarrier.h"
#include "tools/planner/ComparePolicies.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace rota {

PlannedCandidate evaluate(const PlanRequest &base,
                          const PlanCandidate &candidate) {
  PolicyPlan plan;
  planPolicy(requestOf(base, candidate), plan);
  PlannedCandidate result;
  result.candidate = candidate;
  result.error = plan.error;
  if (!plan.error.empty())
    return result;
  const StepTime &time = plan.time;
  StepParts &parts = result.parts;
  auto stages = double(plan.stages.size());
  result.seconds = time.seconds();
  parts.update = time.end();
  if (plan.steadyStep)
    if (auto steady = steadyStep(time, plan.parts->timeline, plan.parts->costs))
      result.seconds = steady->time;
  // Accumulation steps are alike but for what the last one exchanges.
  double steps = (time.seconds() - parts.update) / time.timeline;
  for (const StageNeed &need : plan.stages) {
    result.bytes = std::max(result.bytes, need.bytes);
    parts.inefficiency += steps * need.seconds / stages;
    parts.exposed += steps * need.exposed / stages;
  }
  parts.inefficiency -= steps * plan.exposedInside;
  parts.exposed += steps * plan.exposedInside;
  result.operations = double(candidate.accumulate) * plan.operations / stages;
  parts.bubble = result.seconds - parts.seconds();
  return result;
}

void countParts(PlannedCandidate &evaluation, double operations,
                double peakPerSecond) {
  if (operations <= 0)
    return;
  StepParts &parts = evaluation.parts;
  double work = parts.peak + parts.inefficiency + parts.recomputation;
  double again = std::max(0.0, 1 - operations / evaluation.operations);
  parts.recomputation = work * again;
  parts.peak = std::min(operations / peakPerSecond, work * (1 - again));
  parts.inefficiency = work - parts.recomputation - parts.peak;
}

StepConditions conditionsFor(const PlanRequest &base, int64_t ranks) {
  StepConditions conditions;
  conditions.machine =
      base.compiler.machine.value_or(mlir::rota::Machine()).sharedBy(ranks);
  conditions.machine.cores = 0;
  Program program;
  program.device = base.compiler.target.device;
  program.mesh = {{"data", ranks}};
  conditions.hasBarrier = hasStepBarrier(program, base.optimizer, base.skip);
  return conditions;
}

bool isPlainer(const PlannedCandidate &other, const PlannedCandidate &plan) {
  constexpr double kSameTime = 5e-4, kSameBytes = 0.01;
  const PlanCandidate &a = other.candidate, &b = plan.candidate;
  auto orderOf = [](const PlanCandidate &candidate) {
    return std::tuple(candidate.repeats, candidate.splitBackward,
                      candidate.schedule);
  };
  return std::abs(other.seconds / plan.seconds - 1) < kSameTime &&
         double(other.bytes) < double(plan.bytes) * (1 + kSameBytes) &&
         a.microbatches == b.microbatches && a.accumulate == b.accumulate &&
         a.remat == b.remat && a.meshText() == b.meshText() &&
         orderOf(a) < orderOf(b);
}

} // namespace rota
