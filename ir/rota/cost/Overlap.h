// SPDX-License-Identifier: Apache-2.0
//
// The transfers of straight-line code that run beside its work.
#ifndef ROTA_IR_ROTA_COST_OVERLAP_H
#define ROTA_IR_ROTA_COST_OVERLAP_H

#include "ir/rota/cost/Machine.h"

#include <vector>

namespace mlir::rota {

/// An op of straight-line code: its work, or the transfer that it starts.
struct OverlapStep {
  double work = 0;                // seconds
  double transfer = 0;            // seconds; 0: no transfer
  SmallVector<int, 2> waits = {}; // steps whose transfers end before this one
  /// The share of the speed of work that the transfer takes while both run.
  double slowsWork = 0;
};

/// The steps of ops in the order of a block. A collective ends before the first
/// op other than a view that uses its result.
std::vector<OverlapStep> overlapSteps(ArrayRef<Operation *> ops,
                                      const Machine &machine);

/// The part of each step's transfer, in seconds, by which it makes the code
/// longer, where a rank takes the steps in that order: the rank does nothing
/// else, or works more slowly. Transfers follow each other, in the order in
/// which they start.
std::vector<double> exposedSeconds(ArrayRef<OverlapStep> steps,
                                   ArrayRef<int> order);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_OVERLAP_H
