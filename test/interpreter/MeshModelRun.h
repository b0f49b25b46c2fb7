// SPDX-License-Identifier: Apache-2.0
//
// A whole partitioned model on all ranks of its mesh, layers and microbatches
// in order. The results must equal those of the model before it was
// partitioned.
#ifndef ROTA_TEST_INTERPRETER_MESHMODELRUN_H
#define ROTA_TEST_INTERPRETER_MESHMODELRUN_H

#include "test/interpreter/MeshRun.h"
#include "test/interpreter/ModelRun.h"

namespace rota::interpreter {

/// Loss and gradients of a partitioned, differentiated model. `parameters` and
/// `microbatches` are whole; each rank gets its part of a parameter's compute
/// sharding and of the data, as the functions' arguments say. Residuals stay on
/// the rank that made them. Losses and gradients are put together, summed over
/// the axes that their shardings call unreduced. Emits an error and fails at
/// ranks that should hold the same and do not, and where a value leaves a
/// function in another sharding than the next one takes it.
llvm::FailureOr<Step>
differentiateOnMesh(const mlir::rota::Model &model, const Tensors &parameters,
                    llvm::ArrayRef<Microbatch> microbatches,
                    const Options &options = {});

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_MESHMODELRUN_H
