// SPDX-License-Identifier: Apache-2.0
//
// The kernels of attention's derivative that go over queries alone.
#ifndef ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONDELTA_H
#define ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONDELTA_H

#include "lowering/gpu/attention/GpuAttentionBlocks.h"

namespace rota::lowering {

/// Bytes of delta: [batch, head, sequence] in f32.
int64_t attentionDeltaBytes(const AttentionShape &shape);

/// The call that computes `delta`, the sum of output times cotangent of each
/// query.
llvm::FailureOr<KernelCall> planAttentionDelta(KernelLibrary &library,
                                               mlir::Location loc,
                                               const AttentionShape &shape,
                                               KernelArgument delta);

/// The call that computes the cotangents of sinks out of `delta`: a block of
/// threads for each head, whose sum is in one order.
llvm::FailureOr<KernelCall> planSinkGrad(KernelLibrary &library,
                                         mlir::Location loc,
                                         const AttentionShape &shape,
                                         KernelArgument delta);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONDELTA_H
