// SPDX-License-Identifier: Apache-2.0
//
// From the functions of a differentiated model, formed into kernels, to native
// tasks and the layout of what they work on.
#ifndef ROTA_LOWERING_EXECUTABLE_TASKS_H
#define ROTA_LOWERING_EXECUTABLE_TASKS_H

#include "lowering/executable/TaskLaunches.h"
#include "lowering/kernels/KernelPlan.h"
#include "lowering/memory/Layout.h"

namespace rota::lowering {

struct LoweredModel {
  memory::ModelLayout layout;              // with the tasks' names
  mlir::OwningOpRef<mlir::ModuleOp> tasks; // llvm ops; kernels are declared
  std::vector<TaskLaunches> launches;      // by task, on a GPU
};

/// Lowers every function of `module` to a task: those of the module to tasks of
/// their names, `@forward` of layer kind `@decoder` to `decoder.forward`. A
/// function `logits`, if there, is a task that runs beside the loss, or in a
/// program that `samples` instead of it. Missing
/// kernels are emitted into `library`. Fills mesh, collectives, parameters,
/// data forms, tasks, kernels and counts of `layout.program`.
/// Residuals with `rota.offload` are in the frame's block of those that may
/// rest in host memory; `offloadsInput` tells the same of the input activation.
llvm::FailureOr<LoweredModel>
lowerTasks(mlir::ModuleOp module, KernelLibrary &library, bool samples = false);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TASKS_H
