// SPDX-License-Identifier: Apache-2.0
//
// Attention on matrix instructions.
#ifndef ROTA_LOWERING_GPU_GPUATTENTIONMATRIX_H
#define ROTA_LOWERING_GPU_GPUATTENTIONMATRIX_H

#include "lowering/gpu/GpuAttentionPlaces.h"

namespace rota::lowering {

/// Whether the kernel below computes attention of this shape.
bool hasMatrixAttention(const AttentionShape &shape);

/// The kernel of attention, forward, on matrix instructions: products of bf16,
/// sums in f32, weights rounded to bf16.
llvm::FailureOr<std::string> emitMatrixAttention(KernelLibrary &library,
                                                 mlir::Location loc,
                                                 const AttentionShape &shape);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_GPUATTENTIONMATRIX_H
