// SPDX-License-Identifier: Apache-2.0
//
// The second pass of sums over rows: partial sums added up in a fixed order.
#ifndef ROTA_LOWERING_GPU_ROWS_SUMROWS_H
#define ROTA_LOWERING_GPU_ROWS_SUMROWS_H

#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// The call that sums the rows at `from` into `to`.
llvm::FailureOr<KernelCall> planSumRows(mlir::Operation *op,
                                        const SummedRows &sum,
                                        KernelArgument from, KernelArgument to,
                                        KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ROWS_SUMROWS_H
