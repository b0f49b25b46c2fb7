// SPDX-License-Identifier: Apache-2.0
//
// Attention on matrix instructions.
#ifndef ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONMATRIX_H
#define ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONMATRIX_H

#include "lowering/gpu/attention/GpuAttentionBlocks.h"

namespace rota::lowering {

/// Whether the kernels below compute attention of this shape.
bool hasMatrixAttention(const AttentionShape &shape);

/// The kernel of attention, forward, on matrix instructions: products of bf16,
/// sums in f32, weights rounded to bf16.
llvm::FailureOr<std::string> emitMatrixAttention(KernelLibrary &library,
                                                 mlir::Location loc,
                                                 const AttentionShape &shape);

/// The kernels of its derivative: the cotangents of keys and values, and that
/// of queries. Weights and the scores' cotangents are rounded to bf16.
llvm::FailureOr<std::string> emitMatrixKeyGrad(KernelLibrary &library,
                                               mlir::Location loc,
                                               const AttentionShape &shape);
llvm::FailureOr<std::string> emitMatrixQueryGrad(KernelLibrary &library,
                                                 mlir::Location loc,
                                                 const AttentionShape &shape);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONMATRIX_H
