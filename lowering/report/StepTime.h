// SPDX-License-Identifier: Apache-2.0
//
// The time of a step on the machine of a plan, and what takes it.
#ifndef ROTA_LOWERING_REPORT_STEPTIME_H
#define ROTA_LOWERING_REPORT_STEPTIME_H

#include "lowering/report/TransferEstimates.h"

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

  /// Of a step that ends with a barrier.
  double seconds() const {
    return static_cast<double>(accumulationSteps - 1) * earlier + timeline +
           exchange + update;
  }
};

/// `simulation` is that of `timeline` with the table of `estimates`.
StepTime stepTime(const TransferEstimates &estimates,
                  const pipe::Timeline &timeline,
                  const pipe::Simulation &simulation);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_STEPTIME_H
