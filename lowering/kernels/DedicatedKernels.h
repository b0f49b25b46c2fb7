// SPDX-License-Identifier: Apache-2.0
//
// Kernels written by hand for ops that are more than rows of elementwise work.
// Each function plans the calls for one op (see KernelPlan.h) and emits what
// the library lacks. Only embedding_grad can add into its result.
#ifndef ROTA_LOWERING_KERNELS_DEDICATEDKERNELS_H
#define ROTA_LOWERING_KERNELS_DEDICATEDKERNELS_H

#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

llvm::FailureOr<KernelPlan> planAttention(mlir::rota::AttentionOp op,
                                          KernelLibrary &library);
llvm::FailureOr<KernelPlan> planAttentionGrad(mlir::rota::AttentionGradOp op,
                                              KernelLibrary &library);
llvm::FailureOr<KernelPlan> planCrossEntropy(mlir::rota::CrossEntropyOp op,
                                             KernelLibrary &library);
llvm::FailureOr<KernelPlan>
planCrossEntropyGrad(mlir::rota::CrossEntropyGradOp op, KernelLibrary &library);
llvm::FailureOr<KernelPlan>
planCrossEntropyShard(mlir::rota::CrossEntropyShardOp op,
                      KernelLibrary &library);
llvm::FailureOr<KernelPlan>
planCrossEntropyMerge(mlir::rota::CrossEntropyMergeOp op,
                      KernelLibrary &library);
llvm::FailureOr<KernelPlan> planEmbedding(mlir::rota::EmbeddingOp op,
                                          KernelLibrary &library);
/// Adds into the result's buffer when `accumulate`, else overwrites it.
llvm::FailureOr<KernelPlan> planEmbeddingGrad(mlir::rota::EmbeddingGradOp op,
                                              bool accumulate,
                                              KernelLibrary &library);
llvm::FailureOr<KernelPlan> planRope(mlir::rota::RopeOp op,
                                     KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_DEDICATEDKERNELS_H
