// SPDX-License-Identifier: Apache-2.0
//
// rota-lsp-server: definitions, hovers and diagnostics of Rota's IR for editors
// that speak the language server protocol.
#include "tools/Dialects.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  rota::registerAllLevels(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
