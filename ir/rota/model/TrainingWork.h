// SPDX-License-Identifier: Apache-2.0
//
// The work of a function and of its backward, by the function alone.
#ifndef ROTA_IR_ROTA_MODEL_TRAININGWORK_H
#define ROTA_IR_ROTA_MODEL_TRAININGWORK_H

#include "ir/rota/model/Model.h"

namespace mlir::rota {

/// Work of a function's forward, of the cotangents of its activations and of
/// the gradients of its parameters, in any unit.
struct TrainingWork {
  double forward = 0, input = 0, weight = 0;

  double all() const { return forward + input + weight; }
};

/// The work of `forward`, in which each op is `costOf`. Where all trains, an op
/// is twice that in the backward: once for a cotangent and once for a gradient.
/// There is no gradient of a frozen parameter, no cotangent in a layer with
/// `frozen_input` where nothing that trains has influence, and neither where an
/// op takes frozen parameters alone.
TrainingWork trainingWork(func::FuncOp forward,
                          function_ref<double(Operation *)> costOf);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_MODEL_TRAININGWORK_H
