// SPDX-License-Identifier: Apache-2.0
//
// From priorities to an order: a list scheduler that keeps the bound.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_LISTSCHEDULER_H
#define ROTA_PASSES_PIPELINE_SEARCH_LISTSCHEDULER_H

#include "passes/pipeline/search/Problem.h"

namespace rota::pipe {

/// Priorities. Of the actions that are ready, a rank takes the one with the
/// least key, which is offsets[lane] + microbatch * period: the time at which a
/// periodic schedule would start it.
struct Priorities {
  std::vector<double> offsets; // by lane
  double period = 0;
  /// A rank waits for an action with a smaller key that comes within this share
  /// of the time of the action which is ready. 0: a rank never waits while an
  /// action is ready.
  double patience = 0;
};

/// Orders all actions in the course of time. A rank starts F only if it then
/// holds at most A - (R - 1 - r) activations in its rows of chunks up to r, for
/// each r from that F's row to R - 1. So every order completes. Were all ranks
/// to wait for ever, all microbatches in flight would stand before an F;
/// take the one furthest on, before row r of its rank. The rank then holds
/// activations of rows below r alone, since those of row r and later belong to
/// microbatches that are further on, and by the rule at most A - (R - r), so it
/// has room for this F.
///
/// A bound below R is no bound that can be kept (`Problem::bound`).
Order scheduleByPriority(const Problem &problem, const Priorities &priorities,
                         Budget &budget);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_LISTSCHEDULER_H
