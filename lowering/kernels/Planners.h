// SPDX-License-Identifier: Apache-2.0
//
// One planner per op that becomes kernels; planKernels chooses among them. An
// `accumulate` flag says that the op adds into its result's buffer.
#ifndef ROTA_LOWERING_KERNELS_PLANNERS_H
#define ROTA_LOWERING_KERNELS_PLANNERS_H

#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// A fused group of row-aligned ops: one kernel, and a finishing one for each
/// result that is summed over the rows.
llvm::FailureOr<KernelPlan> planLaunch(mlir::rota::LaunchOp launch,
                                       llvm::ArrayRef<bool> accumulate,
                                       KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_PLANNERS_H
