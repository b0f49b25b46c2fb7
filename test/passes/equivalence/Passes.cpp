// SPDX-License-Identifier: Apache-2.0
//
// Running passes by their text form.
#include "test/passes/equivalence/Passes.h"

#include "lowering/kernels/Passes.h"
#include "passes/differentiate/Passes.h"
#include "passes/optimizer/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/shard/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace rota::interpreter;

llvm::LogicalResult rota::interpreter::runPasses(TestModule &module,
                                                 llvm::StringRef pipeline) {
  [[maybe_unused]] static const bool isRegistered = [] {
    mlir::registerCanonicalizerPass();
    mlir::registerCSEPass();
    mlir::pipe::registerPipelinePasses();
    mlir::rota::registerDifferentiatePasses();
    mlir::rota::registerOptimizerPasses();
    mlir::rota::registerShardPasses();
    rota::lowering::registerKernelsPasses();
    return true;
  }();
  return module.run(pipeline);
}
