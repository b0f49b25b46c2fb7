// SPDX-License-Identifier: Apache-2.0
//
// cp.async, and ldmatrix and mma.sync of bf16. A fragment is what the 32 lanes
// of a warp hold of a matrix of 16 rows: lane l has elements 2 (l % 4) and the
// next of rows l / 4 and l / 4 + 8.
#ifndef ROTA_LOWERING_GPU_MATRIXINSTRUCTIONS_H
#define ROTA_LOWERING_GPU_MATRIXINSTRUCTIONS_H

#include "lowering/gpu/GpuBuilder.h"

#include <array>

namespace rota::lowering {

/// Starts a copy of `size` bytes from global to shared memory; zeros take the
/// place of all of them where there is a condition and it does not hold.
void startAccess(GpuBuilder &k, Memory from, Memory to, int64_t size,
                 mlir::Value condition);

/// Rows after which the swizzle below repeats.
inline constexpr int64_t kSwizzledRows = 8;
/// Where chunk c of 16 bytes of a row lies: at chunk c ^ (row % 8), so that
/// neither eight rows of one chunk nor eight chunks of one row share a bank;
/// i32.
mlir::Value swizzledChunk(GpuBuilder &k, mlir::Value row, mlir::Value chunk);

/// Four registers (i32) of two bf16 each.
using MatrixFragment = std::array<mlir::Value, 4>;

/// Four matrices of 8 x 8 in shared memory: lanes 8 m to 8 m + 7 have the
/// addresses of the rows of matrix m.
MatrixFragment loadMatrices(GpuBuilder &k, Memory at, bool transposed);

/// sums[16 columns] += left * right, two right matrices of eight columns each.
void multiplyAdd(GpuBuilder &k, const MatrixFragment &left,
                 const MatrixFragment &right,
                 llvm::MutableArrayRef<mlir::Value> sums);

/// vector<2xf32>.
mlir::Value pairOf(GpuBuilder &k, mlir::Value low, mlir::Value high);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_MATRIXINSTRUCTIONS_H
