// SPDX-License-Identifier: Apache-2.0
//
// Steps without a barrier between them: a rank begins its next step while
// others still work on the last one.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_STEADYSTEP_H
#define ROTA_PASSES_PIPELINE_TIMELINE_STEADYSTEP_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// A step of the steady state. zb2p takes 10 slots with a step barrier, and 9
/// a step without:
///
///   rank 0  F0 F1 F2 I0 W0 I1 W1 I2 W2 F0 F1 F2 I0 W0 I1 ...
///   rank 1  .  F0 I0 F1 I1 F2 I2 W0 W1 W2 F0 I0 F1 I1 F2 ...
struct SteadyStep {
  double time = 0; // from one step to the next, `stepEnd` of it included
  /// The share of the time without `stepEnd` in which no compute action runs, a
  /// mean over the ranks. Beside Simulation::bubble, it leaves out what a rank
  /// waits for others to fill and drain the pipeline, where it has work of
  /// another step.
  double bubble = 0;
};

/// The steady state of `simulateSteps`. Nothing when the timeline does not
/// complete.
std::optional<SteadyStep> steadyStep(const Timeline &timeline,
                                     const CostTable &costs,
                                     double stepEnd = 0);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_STEADYSTEP_H
