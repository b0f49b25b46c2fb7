// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a rank's arena over the time of a step, by use.
#ifndef ROTA_TOOLS_PLANNER_MEMORYCURVE_H
#define ROTA_TOOLS_PLANNER_MEMORYCURVE_H

#include "lowering/memory/BlockLives.h"
#include "tools/planner/SimulatedPlan.h"

namespace rota {

/// The uses of a rank's memory in a step. Regions that live as long as the
/// program come first, in the arena's order; then blocks of windows and
/// activations, by what they hold.
struct MemoryCurve {
  struct Sample {
    double seconds = 0;
    std::vector<int64_t> bytes; // by use, from then until the next sample
    int64_t total = 0;
  };
  std::vector<std::string> uses;
  std::vector<Sample> samples; // by time
  size_t peak = 0;             // the first sample with the most bytes
};

/// The windows and activations of each stage of the plan. Empty where they
/// cannot be planned again, which a plan that was made rules out.
std::vector<memory::BlockLives> blockLives(const Plan &plan);

/// The curve of a rank of `stage`; `lives` are its blocks. A block counts from
/// the start of the action that opens it to the end of the one that frees it.
/// Gaps between blocks do not count, so no sample exceeds the arena.
MemoryCurve memoryCurve(const Plan &plan, const SimulatedPlan &simulated,
                        const memory::BlockLives &lives, size_t stage);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_MEMORYCURVE_H
