// SPDX-License-Identifier: Apache-2.0
//
// rota-opt: runs any pass or pipeline of Rota on text IR.
#include "ir/rota/Rota.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::rota::RotaDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect>();
  mlir::rota::registerArithModels(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Rota optimizer driver\n", registry));
}
