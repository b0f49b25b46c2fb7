// SPDX-License-Identifier: Apache-2.0
//
// The time of a step on the machine of a plan, and what takes it.
#ifndef ROTA_LOWERING_REPORT_STEPTIME_H
#define ROTA_LOWERING_REPORT_STEPTIME_H

#include "lowering/report/TransferEstimates.h"
#include "passes/pipeline/timeline/SteadyStep.h"

namespace rota {

/// Seconds of a step. Those of ranks are those of the stage with most.
struct StepTime {
  int64_t accumulationSteps = 1;
  /// The timeline of the last accumulation step, and of one before it, which
  /// exchanges nothing for updates.
  double timeline = 0, earlier = 0;
  double exchange = 0; // of updates after the timeline
  double update = 0;   // the optimizer's work
  double compute = 0;  // forwards and backwards of one accumulation step

  /// Seconds after the timeline.
  double end() const { return exchange + update; }
  /// Seconds of a step that ends with a barrier.
  double seconds() const {
    return static_cast<double>(accumulationSteps - 1) * earlier + timeline +
           end();
  }
};

/// `simulation` is that of `timeline` with `costs`, the table of `estimates`.
StepTime stepTime(const TransferEstimates &estimates,
                  const pipe::Timeline &timeline, const pipe::CostTable &costs,
                  const pipe::Simulation &simulation);

/// The steady state of the same steps without a barrier between them. Nothing
/// with several accumulation steps, of which no steady state is simulated.
std::optional<pipe::SteadyStep> steadyStep(const StepTime &time,
                                           const pipe::Timeline &timeline,
                                           const pipe::CostTable &costs);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_STEPTIME_H
