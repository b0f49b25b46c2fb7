// SPDX-License-Identifier: Apache-2.0
//
// rota-opt: runs any pass or pipeline of Rota on text IR.
#include "ir/pipe/Pipe.h"
#include "ir/rota/Rota.h"
#include "lowering/cpu/Passes.h"
#include "lowering/kernels/Passes.h"
#include "passes/differentiate/Passes.h"
#include "passes/pipeline/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::rota::RotaDialect, mlir::pipe::PipeDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, mlir::LLVM::LLVMDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::rota::registerArithModels(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  mlir::rota::registerDifferentiatePasses();
  mlir::pipe::registerPipelinePasses();
  rota::lowering::registerKernelsPasses();
  rota::lowering::registerCpuPasses();
  rota::lowering::registerCpuPipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Rota optimizer driver\n", registry));
}
