// SPDX-License-Identifier: Apache-2.0
//
// Priority rules: a few numbers that say in which order a periodic schedule
// would start the actions.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_RULES_H
#define ROTA_PASSES_PIPELINE_SEARCH_RULES_H

#include "passes/pipeline/search/ListScheduler.h"

#include <random>

namespace rota::pipe {

/// A microbatch enters each `period`, and goes along its path at its own pace
/// in each row of chunks: an action takes `stretch` times its cost. A slow pace
/// leaves room for actions of other microbatches; a fast one frees activations
/// early. All schedules with a steady state are of this form, for instance:
///
///   1F1B                 stretch 1, microbatches enter as memory allows
///   GPipe                backwards late
///   interleaved 1F1B     F of a row S periods after those of the row before
///   V-Min, V-Half        different stretches, V placement
struct PriorityRule {
  std::vector<double> forward, backward; // stretch of each row of chunks
  double turn = 0;     // from the last F to the first backward, in periods
  double weight = 0;   // from I to W, in periods
  double period = 1;   // in times of the busiest rank's work for a microbatch
  double patience = 0; // see Priorities
  std::vector<double> shifts; // by lane, in periods; empty: none
};

/// The priorities of `rule`.
Priorities prioritiesOf(const Problem &problem, const PriorityRule &rule);

/// The rules that are tried always, each for a regime in which it is best.
std::vector<PriorityRule> fixedRules(const Problem &problem);

/// A rule with random numbers.
PriorityRule randomRule(const Problem &problem, std::mt19937 &random);

/// `rule` with one number, or the shifts of a few lanes, changed.
PriorityRule changedRule(const Problem &problem, PriorityRule rule,
                         std::mt19937 &random);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_RULES_H
