// SPDX-License-Identifier: Apache-2.0
//
// Shows the native kernels of a module.
#include "lowering/kernels/KernelPlan.h"
#include "lowering/kernels/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_EMITKERNELS
#include "lowering/kernels/KernelPasses.h.inc"

LogicalResult replaceByKernels(ModuleOp module, KernelLibrary &library) {
  WalkResult planned = module.walk([&](Operation *op) {
    if (!hasKernels(op, library))
      return WalkResult::advance();
    SmallVector<bool> overwrite(op->getNumResults(), false);
    return WalkResult(planKernels(op, overwrite, library));
  });
  if (planned.wasInterrupted())
    return failure();
  Block *body = module.getBody();
  body->walk([](Operation *op) { op->dropAllUses(); });
  body->clear();
  body->getOperations().splice(body->end(),
                               library.getModule().getBody()->getOperations());
  return success();
}

namespace {
struct EmitKernels : impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;

  void runOnOperation() override {
    KernelLibrary library(&getContext(), vectorBits);
    if (failed(replaceByKernels(getOperation(), library)))
      signalPassFailure();
  }
};
} // namespace
} // namespace rota::lowering
