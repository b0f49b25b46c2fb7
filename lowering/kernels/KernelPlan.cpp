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
             CrossEntropyGradOp, CrossEntropyShardOp, CrossEntropyMergeOp,
             EmbeddingOp, EmbeddingGradOp, RopeOp>(op);
}

static FailureOr<KernelPlan>
choosePlan(Operation *op, ArrayRef<bool> accumulate, KernelLibrary &library) {
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
      .Case([&](CrossEntropyShardOp op) {
        return planCrossEntropyShard(op, library);
      })
      .Case([&](CrossEntropyMergeOp op) {
        return planCrossEntropyMerge(op, library);
      })
      .Case([&](EmbeddingOp op) { return planEmbedding(op, library); })
      .Case([&](RopeOp op) { return planRope(op, library); })
      .Default([](Operation *other) -> FailureOr<KernelPlan> {
        return other->emitOpError("expected an op that has a kernel");
      });
}

/// Bytes that `op` reads and writes when each value goes once to memory and
/// back.
static double traffic(Operation *op) {
  if (auto costed = dyn_cast<mlir::rota::CostOpInterface>(op)) {
    mlir::rota::Cost cost = costed.getCost();
    return cost.bytesRead + cost.bytesWritten;
  }
  double bytes = 0;
  auto add = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8.0;
  };
  llvm::for_each(op->getOperandTypes(), add);
  llvm::for_each(op->getResultTypes(), add);
  return bytes;
}

FailureOr<KernelPlan> planKernels(Operation *op, ArrayRef<bool> accumulate,
                                  KernelLibrary &library) {
  FailureOr<KernelPlan> plan = choosePlan(op, accumulate, library);
  // The first call does the work; calls after it combine what its blocks left.
  if (succeeded(plan) && !plan->calls.empty()) {
    const KernelCall &call = plan->calls.front();
    library.setRowBytes(call.symbol, int64_t(traffic(op) / double(call.rows)));
  }
  return plan;
}

} // namespace rota::lowering
