// SPDX-License-Identifier: Apache-2.0
//
// Shows the native kernels of a module.
#include "lowering/kernels/KernelPlan.h"
#include "lowering/kernels/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_EMITKERNELS
#include "lowering/kernels/KernelPasses.h.inc"

namespace {
struct EmitKernels : impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    KernelLibrary library(&getContext(), vectorBits);
    WalkResult planned = module.walk([&](Operation *op) {
      if (!hasKernels(op))
        return WalkResult::advance();
      SmallVector<bool> overwrite(op->getNumResults(), false);
      return WalkResult(planKernels(op, overwrite, library));
    });
    if (planned.wasInterrupted())
      return signalPassFailure();
    Block *body = module.getBody();
    body->walk([](Operation *op) { op->dropAllUses(); });
    body->clear();
    body->getOperations().splice(
        body->end(), library.getModule().getBody()->getOperations());
  }
};
} // namespace
} // namespace rota::lowering
