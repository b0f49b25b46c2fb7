// SPDX-License-Identifier: Apache-2.0
//
// Kernels that do many launches at once, for a step's end: each launch is a row
// of a table in device memory.
#ifndef ROTA_LOWERING_GPU_ROWS_LAUNCHTABLE_H
#define ROTA_LOWERING_GPU_ROWS_LAUNCHTABLE_H

#include "lowering/gpu/rows/RowGeometry.h"
#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// Whether the launch is all that its function does: there are no other ops,
/// and the function returns its results, each once.
bool isWholeFunction(mlir::rota::LaunchOp op);

/// Emits the kernel for a table of launches of this body, and names it in
/// `shape`, the shape of a launch over `rows` rows. Where nothing is combined
/// along rows, launches of any shape are in one table: elements are divided
/// into chunks. Otherwise those of one width are. No bit differs from the
/// launch's own kernel. Leaves `shape` as it is where there is no such kernel:
/// for sums over rows, and more than ROTA_TABLE_ARGUMENTS arguments.
llvm::LogicalResult addTable(mlir::Location loc, llvm::StringRef name,
                             const RowBody &body, int64_t rows,
                             KernelLibrary &library, LaunchShape &shape);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ROWS_LAUNCHTABLE_H
