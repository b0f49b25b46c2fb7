// SPDX-License-Identifier: Apache-2.0
//
// Differentiation: from a model as built to one that can be trained.
#ifndef ROTA_PASSES_DIFFERENTIATE_PASSES_H
#define ROTA_PASSES_DIFFERENTIATE_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"

namespace mlir::rota {

#define GEN_PASS_DECL
#include "passes/differentiate/Passes.h.inc"

/// The options of `differentiate-pipeline`. `assign-remat` has the same
/// `remat`.
struct DifferentiatePipelineOptions : DifferentiateOptions,
                                      ExtractNamedOptions {};

/// From a model as built to a verified differentiated one without names.
void buildDifferentiatePipeline(OpPassManager &manager,
                                const DifferentiatePipelineOptions &options);

/// `freeze-parameters` on a model as built.
void buildFreezePipeline(OpPassManager &manager,
                         const FreezeParametersOptions &options);

/// Makes the passes of this folder and `differentiate-pipeline` known to tools.
void registerDifferentiatePasses();

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_PASSES_H
