// SPDX-License-Identifier: Apache-2.0
//
// The order of the differentiation passes.
#include "passes/TextOptions.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/differentiate/Passes.h.inc"

struct DifferentiateText : ::rota::PipelineText<DifferentiatePipelineOptions> {
  DifferentiateText() {
    add("remat", remat);
    add("split", split);
    add("extract", extract);
  }
};
} // namespace

void mlir::rota::buildDifferentiatePipeline(
    OpPassManager &manager, const DifferentiatePipelineOptions &options) {
  // One read and one table for all uses, so that each has one derivative.
  manager.addPass(createCSEPass());
  // Policies of single stages.
  DifferentiateOptions differentiate = options;
  if (StringRef(options.remat).contains(':')) {
    manager.addPass(createAssignRemat({options.remat}));
    differentiate.remat = DifferentiateOptions().remat;
  }
  manager.addPass(createDifferentiate(differentiate));
  if (!options.extract.empty())
    manager.addPass(createExtractNamed({options.extract}));
  manager.addPass(createEraseNames());
  // Rules make unused cotangents and the same constant twice.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createVerifyDifferentiated());
}

void mlir::rota::registerDifferentiatePasses() {
  registerRotaDifferentiatePasses();
  PassPipelineRegistration<DifferentiateText>(
      "differentiate-pipeline",
      "From a model as built to a verified differentiated one without names",
      buildDifferentiatePipeline);
}
