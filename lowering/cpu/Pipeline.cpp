// SPDX-License-Identifier: Apache-2.0
//
// From explicit vector code to LLVM's dialect.
#include "lowering/cpu/Object.h"
#include "lowering/cpu/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace rota::lowering {

void buildCpuToLLVMPipeline(OpPassManager &manager) {
  // Arithmetic that the machine does not have.
  manager.addPass(createApproximateMath());
  // Loops to branches.
  manager.addPass(createSCFToControlFlowPass());
  // Everything to LLVM's ops.
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void registerCpuPipelines() {
  PassPipelineRegistration<> pipeline(
      "cpu-to-llvm", "vector code to LLVM's dialect", buildCpuToLLVMPipeline);
}

LogicalResult lowerToLLVMDialect(ModuleOp module) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  buildCpuToLLVMPipeline(manager);
  return manager.run(module);
}

} // namespace rota::lowering
