// SPDX-License-Identifier: Apache-2.0
//
// Everything that a rank on a GPU launches in a step.
#ifndef ROTA_LOWERING_REPORT_LAUNCHES_H
#define ROTA_LOWERING_REPORT_LAUNCHES_H

#include "lowering/executable/TaskLaunches.h"
#include "runtime/program/Program.h"

namespace rota {

/// Launches of one name: a kernel of the model, a product, a kernel of the
/// runtime, or "fill".
struct LaunchRow {
  std::string kernel;
  int64_t launches = 0;
  double bytes = 0;      // read and written; see TaskLaunch::bytes
  double operations = 0; // floating-point operations
};

/// The launches of a rank of a stage in a training step.
struct StepLaunches {
  int stage = 0;
  std::vector<LaunchRow> rows; // the most bytes first
  LaunchRow sum() const;
};

/// Launches of the stage that has the most, by `launches` of each task. What
/// transfers launch, and copies, are not in it. `decides`: the run may skip
/// steps (SkipOptions::isOn).
StepLaunches stepLaunches(const Program &program,
                          const std::vector<lowering::TaskLaunches> &launches,
                          bool decides);

/// The launches as an aligned table.
std::string describeLaunches(const StepLaunches &step);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_LAUNCHES_H
