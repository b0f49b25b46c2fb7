// SPDX-License-Identifier: Apache-2.0
//
// Chooses the planner of an op.
#include "lowering/kernels/Planners.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace rota::lowering {

FailureOr<KernelPlan> planKernels(Operation *op, ArrayRef<bool> accumulate,
                                  KernelLibrary &library) {
  return llvm::TypeSwitch<Operation *, FailureOr<KernelPlan>>(op)
      .Case<mlir::rota::LaunchOp>(
          [&](auto launch) { return planLaunch(launch, accumulate, library); })
      .Default([](Operation *other) -> FailureOr<KernelPlan> {
        return other->emitOpError("expected an op that has a kernel");
      });
}

} // namespace rota::lowering
