// SPDX-License-Identifier: Apache-2.0
//
// Moves single actions of an order to make the step shorter.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_LOCALSEARCH_H
#define ROTA_PASSES_PIPELINE_SEARCH_LOCALSEARCH_H

#include "passes/pipeline/search/Problem.h"

#include <random>

namespace rota::pipe {

/// Searches from `order`, which completes within the bound, and returns the
/// order with the least makespan that it meets, `order` included. It ends at
/// `target` (a lower bound), after `steps` moves, or with the budget.
///
/// The makespan is the length of a critical path: actions that each start when
/// the one before ends. Its parts on one rank are blocks. Only a move that
/// takes an action of a block to its front, or after it, can make the path
/// shorter, so these moves are tried, at random. A move that is not worse than
/// the order of kMemory moves ago is taken (late acceptance; Burke and Bykov,
/// The late acceptance hill-climbing heuristic, 2017).
Order improveOrder(const Problem &problem, Order order, double target,
                   int64_t steps, std::mt19937 &random, Budget &budget);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_LOCALSEARCH_H
