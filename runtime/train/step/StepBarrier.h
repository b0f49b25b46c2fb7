// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks of a run wait for each other between steps, and what the
// plan says of such steps: for the trainer and for `rota plan`.
#ifndef ROTA_RUNTIME_TRAIN_STEP_STEPBARRIER_H
#define ROTA_RUNTIME_TRAIN_STEP_STEPBARRIER_H

#include "runtime/program/DeviceTraits.h"
#include "runtime/program/Program.h"
#include "runtime/train/options/TrainerOptions.h"

namespace rota {

/// Whether the ranks of a run wait for each other at the end of a step: where
/// the norm of the whole gradient is needed for the update. On a device that
/// works on its own, its streams wait and the host does not. A single rank has
/// nobody to wait for.
inline bool hasStepBarrier(const Program &program,
                           const OptimizerOptions &options,
                           const SkipOptions &skips) {
  return (options.gradientClip > 0.0 && !options.postValidate) ||
         skips.isOn() || traitsOf(program.device).isGpu ||
         rankCount(program) == 1;
}

/// The planned share of a step in which ranks are idle, in the run's kind of
/// steps.
inline double plannedBubble(const Program &program, const Options &options) {
  return hasStepBarrier(program, options.optimizer, options.skip)
             ? program.bubble
             : program.steadyBubble;
}

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_STEPBARRIER_H
