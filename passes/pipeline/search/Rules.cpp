// SPDX-License-Identifier: Apache-2.0
//
// See Rules.h.
#include "passes/pipeline/search/Rules.h"

#include <algorithm>

namespace rota::pipe {
namespace {

constexpr double kStretches[] = {0.5, 1, 1, 1.5, 2, 2.5, 3, 4};
constexpr double kTurns[] = {0, 0, 0, -1, 0.5, 1, 2};
constexpr double kWeights[] = {0, 0.25, 0.5, 1, 2, 4, 16};
constexpr double kPeriods[] = {0, 0.25, 0.5, 0.75, 1, 1, 1, 1, 1.25, 1.5, 2};
constexpr double kPatiences[] = {0, 0, 0, 0.25, 0.5, 1, 2};

/// A number below `count`. The distributions of the standard library differ
/// between implementations.
int below(std::mt19937 &random, size_t count) {
  return static_cast<int>(random() % count);
}

template <size_t size>
double pick(const double (&values)[size], std::mt19937 &random) {
  return values[below(random, size)];
}

} // namespace

Priorities prioritiesOf(const Problem &problem, const PriorityRule &rule) {
  double unit = *std::ranges::max_element(problem.work);
  Priorities priorities;
  priorities.offsets.resize(problem.lanes());
  priorities.period = rule.period * unit;
  priorities.patience = rule.patience;
  double time = 0;
  for (int lane = 0; lane < problem.path(); ++lane) {
    int chunk = problem.chunkOf(lane), row = problem.shape.rowOf(chunk);
    if (lane == problem.chunks)
      time += rule.turn * unit;
    priorities.offsets[lane] = time;
    double stretch =
        problem.isForward(lane) ? rule.forward[row] : rule.backward[row];
    time += stretch * (problem.cost[lane] + problem.latency[lane]);
    if (problem.split && !problem.isForward(lane))
      priorities.offsets[problem.weightOf(chunk)] =
          priorities.offsets[lane] + problem.cost[lane] + rule.weight * unit;
  }
  for (size_t lane = 0; lane < rule.shifts.size(); ++lane)
    priorities.offsets[lane] += rule.shifts[lane] * unit;
  return priorities;
}

std::vector<PriorityRule> fixedRules(const Problem &problem) {
  size_t rows = problem.shape.repeats;
  auto microbatches = double(problem.microbatches);
  std::vector<PriorityRule> rules;
  auto add = [&](double forward, double backward, double turn, double weight) {
    PriorityRule rule;
    rule.forward.assign(rows, forward);
    rule.backward.assign(rows, backward);
    rule.turn = turn;
    rule.weight = weight;
    rules.push_back(rule);
    return &rules.back();
  };
  // W as filler, in the bubbles; backwards first, forwards first, in turn.
  for (double turn : {-2 * microbatches, 2 * microbatches, 0.0})
    add(1, 1, turn, 4 * microbatches);
  // All rows of a rank before the next microbatch; breadth first.
  add(1, 1, -2 * microbatches, 4 * microbatches)->period = 16;
  add(1, 1, -2 * microbatches, 4 * microbatches)->period = 0.01;
  // Periodic schedules, with different paces.
  for (double forward : {1.0, 2.0, 3.0})
    for (double backward : {1.0, 2.0, 3.0})
      for (double weight : {0.0, 1.0})
        if (problem.split || weight == 0)
          add(forward, backward, 0, weight);
  return rules;
}

PriorityRule randomRule(const Problem &problem, std::mt19937 &random) {
  PriorityRule rule;
  for (int row = 0; row < problem.shape.repeats; ++row) {
    rule.forward.push_back(pick(kStretches, random));
    rule.backward.push_back(pick(kStretches, random));
  }
  rule.turn = pick(kTurns, random);
  rule.weight = pick(kWeights, random);
  rule.period = pick(kPeriods, random);
  rule.patience = pick(kPatiences, random);
  return rule;
}

/// Moves the lanes of one kind in one row of chunks on a few neighbouring
/// ranks.
static void shiftLanes(const Problem &problem, PriorityRule &rule,
                       std::mt19937 &random) {
  rule.shifts.resize(problem.lanes());
  int first = below(random, problem.lanes());
  int count = 1 + below(random, problem.shape.stages);
  double shift = (below(random, 17) - 8) / 8.0;
  for (int lane = first; lane < std::min(first + count, problem.lanes());
       ++lane)
    rule.shifts[lane] += shift;
}

PriorityRule changedRule(const Problem &problem, PriorityRule rule,
                         std::mt19937 &random) {
  int row = below(random, problem.shape.repeats);
  switch (below(random, 9)) {
  case 0:
    rule.forward[row] = pick(kStretches, random);
    break;
  case 1:
    rule.backward[row] = pick(kStretches, random);
    break;
  case 2:
    rule.turn += (below(random, 9) - 4) / 4.0;
    break;
  case 3:
    rule.weight += (below(random, 9) - 4) / 4.0;
    break;
  case 4:
    rule.period = pick(kPeriods, random);
    break;
  case 5:
    rule.patience = pick(kPatiences, random);
    break;
  default:
    shiftLanes(problem, rule, random);
  }
  return rule;
}

} // namespace rota::pipe
