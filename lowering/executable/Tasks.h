// SPDX-License-Identifier: Apache-2.0
//
// From the functions of a differentiated model, formed into kernels, to native
// tasks and the layout of what they work on.
#ifndef ROTA_LOWERING_EXECUTABLE_TASKS_H
#define ROTA_LOWERING_EXECUTABLE_TASKS_H

#include "lowering/kernels/KernelPlan.h"
#include "lowering/memory/Layout.h"

namespace rota::lowering {

struct LoweredModel {
  memory::ModelLayout layout;              // with the tasks' names
  mlir::OwningOpRef<mlir::ModuleOp> tasks; // llvm ops; kernels are declared
};

/// Lowers every function of `module`: `embed`, `loss` and what differentiation
/// made of them to tasks of their names, `@forward` of layer kind `@decoder` to
/// `decoder.forward`. A function `logits`, if there, is a task that runs beside
/// the loss. Kernels that are missing are emitted into `library`.
/// `layout.program` gets mesh, collectives, parameters, data forms, tasks and
/// the counts that reports want; kernels are the caller's to add. A residual
/// whose result of `@forward` has `rota.offload` stands in the frame's block of
/// those that may rest in host memory; the activation that enters may, too,
/// where the first argument of `@backward` (or `@backward_input`) has it.
llvm::FailureOr<LoweredModel> lowerTasks(mlir::ModuleOp module,
                                         KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TASKS_H
