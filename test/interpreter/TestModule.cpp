// SPDX-License-Identifier: Apache-2.0
//
// A module parsed from text for a GoogleTest.
#include "test/interpreter/TestModule.h"

#include "ir/pipe/Pipe.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

using namespace rota::interpreter;

static const mlir::DialectRegistry &dialects() {
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry registry;
    registry.insert<mlir::pipe::PipeDialect, mlir::rota::RotaDialect,
                    mlir::arith::ArithDialect, mlir::func::FuncDialect,
                    mlir::math::MathDialect>();
    mlir::rota::registerArithModels(registry);
    return registry;
  }();
  return registry;
}

TestModule::TestModule(llvm::StringRef text)
    : context(dialects(), mlir::MLIRContext::Threading::DISABLED),
      handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (!diagnostics.empty())
          diagnostics += "\n";
        diagnostics += diagnostic.str();
      }) {
  module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

llvm::LogicalResult TestModule::run(llvm::StringRef pipeline) {
  mlir::PassManager manager(&context, mlir::ModuleOp::getOperationName());
  llvm::raw_string_ostream errors(diagnostics);
  if (failed(mlir::parsePassPipeline(pipeline, manager, errors)))
    return llvm::failure();
  return manager.run(*module);
}

llvm::LogicalResult TestModule::verify() { return mlir::verify(*module); }

std::string TestModule::takeDiagnostics() {
  return std::exchange(diagnostics, {});
}
