// SPDX-License-Identifier: Apache-2.0
//
// The order of the differentiation passes.
#include "passes/Registration.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/differentiate/Passes.h.inc"
} // namespace

void mlir::rota::buildDifferentiatePipeline(
    OpPassManager &manager, const DifferentiatePipelineOptions &options) {
  // One read and one table for all uses, so that each has one derivative.
  manager.addPass(createCSEPass());
  manager.addPass(createAssignRemat({options.remat}));
  manager.addPass(createDifferentiate(options));
  manager.addPass(createExtractNamed(options));
  manager.addPass(createEraseNames());
  // Rules make unused cotangents and the same constant twice.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createVerifyDifferentiated());
}

void mlir::rota::buildFreezePipeline(OpPassManager &manager,
                                     const FreezeParametersOptions &options) {
  manager.addPass(createFreezeParameters(options));
}

void mlir::rota::registerDifferentiatePasses() {
  registerRotaDifferentiatePasses();
  ::rota::registerPipeline(
      "differentiate-pipeline",
      "From a model as built to a verified differentiated one without names",
      [](OpPassManager &manager) { buildDifferentiatePipeline(manager, {}); });
}
