// SPDX-License-Identifier: Apache-2.0
//
// A module parsed from text for a GoogleTest, with its diagnostics caught.
#ifndef ROTA_TEST_INTERPRETER_TESTMODULE_H
#define ROTA_TEST_INTERPRETER_TESTMODULE_H

#include "test/interpreter/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace rota::interpreter {

class TestModule {
public:
  /// Parses and verifies `text`. The module is null when that fails, with the
  /// reason in the diagnostics.
  explicit TestModule(llvm::StringRef text);

  explicit operator bool() const { return bool(module); }
  mlir::ModuleOp get() { return *module; }
  /// Null when there is none of that name in the module.
  mlir::func::FuncOp function(llvm::StringRef name) {
    return module->lookupSymbol<mlir::func::FuncOp>(name);
  }
  mlir::MLIRContext *getContext() { return &context; }

  /// Runs a pass pipeline, in the text form of rota-opt, on the module.
  llvm::LogicalResult run(llvm::StringRef pipeline);
  /// Checks the module.
  llvm::LogicalResult verify();
  /// The messages since the last call, one a line.
  std::string takeDiagnostics();

private:
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;
  std::string diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_TESTMODULE_H
