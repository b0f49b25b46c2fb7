// SPDX-License-Identifier: Apache-2.0
//
// Chooses the planner of an op.
#include "lowering/kernels/DedicatedKernels.h"
#include "lowering/kernels/Planners.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace rota::lowering {

bool hasKernels(Operation *op) {
  using namespace mlir::rota;
  return isa<LaunchOp, AttentionOp, AttentionGradOp, CrossEntropyOp,
             CrossEntropyGradOp, EmbeddingOp, EmbeddingGradOp, RopeOp>(op);
}

FailureOr<KernelPlan> planKernels(Operation *op, ArrayRef<bool> accumulate,
                                  KernelLibrary &library) {
  if (auto launch = dyn_cast<mlir::rota::LaunchOp>(op))
    return planLaunch(launch, accumulate, library);
  if (auto grad = dyn_cast<mlir::rota::EmbeddingGradOp>(op))
    return planEmbeddingGrad(grad, accumulate.front(), library);
  if (llvm::is_contained(accumulate, true))
    return op->emitOpError("expected an op that can add into its result");
  using namespace mlir::rota;
  return llvm::TypeSwitch<Operation *, FailureOr<KernelPlan>>(op)
      .Case([&](AttentionOp op) { return planAttention(op, library); })
      .Case([&](AttentionGradOp op) { return planAttentionGrad(op, library); })
      .Case([&](CrossEntropyOp op) { return planCrossEntropy(op, library); })
      .Case([&](CrossEntropyGradOp op) {
        return planCrossEntropyGrad(op, library);
      })
      .Case([&](EmbeddingOp op) { return planEmbedding(op, library); })
      .Case([&](RopeOp op) { return planRope(op, library); })
      .Default([](Operation *other) -> FailureOr<KernelPlan> {
        return other->emitOpError("expected an op that has a kernel");
      });
}

} // namespace rota::lowering
