// SPDX-License-Identifier: Apache-2.0
//
// From GPU kernels to the dialects of LLVM and NVVM.
#include "lowering/gpu/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMAttrs.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace rota::lowering {

void buildGpuToNvvmPipeline(OpPassManager &manager) {
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  // Math functions that conversion would turn into calls of a library.
  kernels.addPass(createGpuMath());
  // Loops to branches.
  kernels.addPass(createSCFToControlFlowPass());
  // Everything to the ops of LLVM and NVVM.
  kernels.addPass(createConvertNVVMToLLVMPass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.useBarePtrCallConv = true;
  kernels.addPass(createConvertGpuOpsToNVVMOps(options));
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  // The lines of the MLIR text, for reports on what a kernel does.
  LLVM::DIScopeForLLVMFuncOpPassOptions lines;
  lines.emissionKind = LLVM::DIEmissionKind::LineTablesOnly;
  manager.addPass(LLVM::createDIScopeForLLVMFuncOpPass(lines));
}

void registerGpuPipelines() {
  PassPipelineRegistration<> pipeline(
      "gpu-to-nvvm", "GPU kernels to the dialects of LLVM and NVVM",
      buildGpuToNvvmPipeline);
}

} // namespace rota::lowering
