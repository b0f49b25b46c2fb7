// SPDX-License-Identifier: Apache-2.0
//
// The optimizer's kernels: one pass over a parameter's row does everything.
#ifndef ROTA_LOWERING_EXECUTABLE_OPTIMIZER_H
#define ROTA_LOWERING_EXECUTABLE_OPTIMIZER_H

#include "lowering/executable/Trainer.h"

namespace rota::lowering {

/// Emits the update and square kernels of each parameter of `program`, equal
/// ones once, and sets `program.kernels` and the parameters' kernel numbers.
/// Nothing may be emitted into `library` afterwards.
llvm::LogicalResult addOptimizer(mlir::Location loc, Program &program,
                                 KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_OPTIMIZER_H
