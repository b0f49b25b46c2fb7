// SPDX-License-Identifier: Apache-2.0
//
// rota-opt: runs any pass or pipeline of Rota on text IR.
#include "lowering/Pipeline.h"
#include "passes/differentiate/Passes.h"
#include "passes/optimizer/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/shard/Passes.h"
#include "tools/Dialects.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  rota::registerAllLevels(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  mlir::rota::registerDifferentiatePasses();
  mlir::rota::registerOptimizerPasses();
  mlir::rota::registerShardPasses();
  mlir::pipe::registerPipelinePasses();
  rota::lowering::registerLoweringPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Rota optimizer driver\n", registry));
}
