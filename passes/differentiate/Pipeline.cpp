// SPDX-License-Identifier: Apache-2.0
//
// The order of the differentiation passes.
#include "passes/differentiate/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/differentiate/Passes.h.inc"
} // namespace

void rota::buildDifferentiatePipeline(
    OpPassManager &manager, const DifferentiatePipelineOptions &options) {
  // One read and one table for all uses, so that each has one derivative.
  manager.addPass(createCSEPass());
  // Policies of single stages.
  std::string remat = options.remat;
  if (StringRef(remat).contains(':')) {
    manager.addPass(createAssignRemat({remat}));
    remat = "none";
  }
  manager.addPass(createDifferentiate({remat, options.split.getValue()}));
  if (!options.extract.empty())
    manager.addPass(createExtractNamed({options.extract.getValue()}));
  manager.addPass(createEraseNames());
  // Rules make unused cotangents and the same constant twice.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createVerifyDifferentiated());
}

void rota::registerDifferentiatePasses() {
  registerRotaDifferentiatePasses();
  PassPipelineRegistration<DifferentiatePipelineOptions>(
      "differentiate-pipeline",
      "From a model as built to a verified differentiated one without names",
      buildDifferentiatePipeline);
}
