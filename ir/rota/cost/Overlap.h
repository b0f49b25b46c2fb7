// SPDX-License-Identifier: Apache-2.0
//
// The transfers of straight-line code that run beside its work.
#ifndef ROTA_IR_ROTA_COST_OVERLAP_H
#define ROTA_IR_ROTA_COST_OVERLAP_H

#include "ir/rota/Rota.h"
#include "ir/rota/cost/AssumedSpeed.h"

#include <vector>

namespace mlir::rota {

/// An op of straight-line code: its work, or the transfer that it starts.
struct OverlapStep {
  double flops = 0;
  int64_t bytes = 0;              // sent by one rank; 0: no transfer
  SmallVector<int, 2> waits = {}; // steps whose transfers end before this one
};

/// The steps of ops in the order of a block. A collective ends before the first
/// op other than a view that uses its result.
std::vector<OverlapStep> overlapSteps(ArrayRef<Operation *> ops);

/// The part of each step's transfer, in seconds, in which the rank does nothing
/// else, where it takes the steps in that order. Transfers follow each other,
/// in the order in which they start.
std::vector<double> exposedSeconds(ArrayRef<OverlapStep> steps,
                                   ArrayRef<int> order,
                                   const AssumedSpeed &speed);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_OVERLAP_H
