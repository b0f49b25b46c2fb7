// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/Variants.h"

#include "tools/planner/ChooseRemat.h"

namespace rota {
namespace {

/// The most chunks whose policies are chosen. That takes some twenty plans, and
/// seconds where there are more chunks.
constexpr int64_t kMostChunks = 64;
constexpr double kTimeOfPolicies = 0.25; // share that must be left

/// A variant, which is made on a thread; none where there is none.
using Make = std::function<std::optional<PlanCandidate>()>;

std::optional<PlanCandidate> withPoliciesOfStages(const PlanRequest &base,
                                                  PlanCandidate candidate) {
  PlanRequest request = requestOf(base, candidate);
  request.chooseRemat = true;
  std::string error;
  auto choice = chooseRemat(request, comparePolicies(request), error);
  if (!choice || choice->plan.policy == candidate.remat)
    return std::nullopt;
  candidate.remat = choice->plan.policy;
  return candidate;
}

} // namespace

std::vector<PlannedCandidate>
planVariantsOf(const SearchRequest &request,
               const std::vector<PlannedCandidate> &plans, SearchWork &work) {
  const FixedChoices &fixed = request.fixed;
  std::vector<Make> variants;
  for (const PlannedCandidate &plan : plans) {
    const PlanCandidate &candidate = plan.candidate;
    bool hasFewChunks = candidate.stages * candidate.repeats <= kMostChunks;
    if (!fixed.remat && request.plan.compiler.memory > 0 && hasFewChunks)
      variants.push_back([&] {
        return work.hasLeft(kTimeOfPolicies)
                   ? withPoliciesOfStages(request.plan, candidate)
                   : std::nullopt;
      });
    if (!fixed.split && candidate.stages > 1)
      variants.push_back([&] {
        PlanCandidate variant = candidate;
        variant.split = pipe::LayerSplit::Balanced;
        return std::optional(variant);
      });
    if (!fixed.shardOptimizer && candidate.shardOptimizer)
      variants.push_back([&] {
        PlanCandidate variant = candidate;
        variant.shardOptimizer = false;
        return std::optional(variant);
      });
  }
  std::vector<std::optional<PlannedCandidate>> results(variants.size());
  work.run(variants.size(), [&](size_t i) {
    std::optional<PlanCandidate> variant = variants[i]();
    if (variant && !work.isOver())
      results[i] = evaluate(request.plan, *variant);
  });
  std::vector<PlannedCandidate> found;
  for (std::optional<PlannedCandidate> &result : results)
    if (result)
      found.push_back(std::move(*result));
  return found;
}

} // namespace rota
