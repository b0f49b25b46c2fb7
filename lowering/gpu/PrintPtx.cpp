// SPDX-License-Identifier: Apache-2.0
//
// Prints the PTX of a module's kernels.
#include "lowering/gpu/NvvmModule.h"
#include "lowering/gpu/Passes.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_PRINTPTX
#include "lowering/gpu/GpuPasses.h.inc"

namespace {
struct PrintPtx : impl::PrintPtxBase<PrintPtx> {
  using PrintPtxBase::PrintPtxBase;

  void runOnOperation() override {
    for (auto kernels : getOperation().getOps<gpu::GPUModuleOp>()) {
      llvm::LLVMContext context;
      auto module = translateForGpu(kernels, context, chip);
      if (!module)
        return signalPassFailure();
      auto text = emitPtx(kernels.getLoc(), *module, chip);
      if (failed(text))
        return signalPassFailure();
      llvm::outs() << *text;
    }
  }
};
} // namespace
} // namespace rota::lowering
