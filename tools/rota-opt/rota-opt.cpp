// SPDX-License-Identifier: Apache-2.0
//
// rota-opt: runs any pass or pipeline of Rota on text IR.
#include "lowering/Pipeline.h"
#include "passes/differentiate/Passes.h"
#include "passes/optimizer/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/shard/Passes.h"
#include "runtime/files/Nesting.h"
#include "runtime/files/Streams.h"
#include "tools/Dialects.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

/// Reports mistakes in the passes and their options as such: MlirOptMain has
/// read the input by then, and prints it with the message.
static llvm::LogicalResult
checkPipeline(const mlir::MlirOptMainConfig &config,
              const mlir::DialectRegistry &registry) {
  if (config.shouldUseExplicitModule()) // the first op is any
    return llvm::success();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &found) {
    llvm::errs() << "error: " << found.str() << "\n";
  });
  mlir::PassManager passes(&context, "builtin.module",
                           mlir::PassManager::Nesting::Implicit);
  return config.setupPassPipeline(passes);
}

/// MlirOptMain of `argc` and `argv` on input of limited depth: the
/// parser calls itself for each level of brackets.
static llvm::LogicalResult run(int argc, char **argv,
                               mlir::DialectRegistry &registry) {
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Rota optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  if (failed(checkPipeline(config, registry)))
    return llvm::failure();
  std::string mistake;
  auto buffer = mlir::openInputFile(input, &mistake);
  if (buffer && !mlir::isBytecode(*buffer))
    mistake = rota::nestingMistake(buffer->getBuffer());
  auto file =
      mistake.empty() ? mlir::openOutputFile(output, &mistake) : nullptr;
  if (!file) {
    llvm::errs() << "error: " << mistake << "\n";
    return llvm::failure();
  }
  if (failed(
          mlir::MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return llvm::failure();
  file->keep();
  return llvm::success();
}

int main(int argc, char **argv) {
  rota::prepareStreams();
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
  return mlir::asMainReturnCode(run(argc, argv, registry));
}
