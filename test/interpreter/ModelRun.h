// SPDX-License-Identifier: Apache-2.0
//
// A whole model, run sequentially by the interpreter: layers in order,
// microbatches in order, gradients accumulated. What any pipeline of the same
// model must compute.
#ifndef ROTA_TEST_INTERPRETER_MODELRUN_H
#define ROTA_TEST_INTERPRETER_MODELRUN_H

#include "ir/rota/Model.h"
#include "test/interpreter/Interpreter.h"

namespace rota::interpreter {

/// What enters `embed` and `loss`.
struct Microbatch {
  Tensor input, target;
};

/// The sums over all microbatches.
struct Step {
  double sum = 0, weight = 0;
  /// Mean loss: sum / weight.
  double loss() const { return sum / weight; }
  /// Derivative of the mean loss in each parameter, by checkpoint name; empty
  /// after evaluation. The division by the weight happens once, at the end.
  Tensors gradients;
  /// The value that each microbatch's loss function names "logits", where it
  /// names one.
  llvm::SmallVector<Tensor> logits;
};

/// A parameter's name in checkpoints in layer `layer` (ignored outside layers).
std::string checkpointName(const mlir::rota::Model &model,
                           mlir::rota::ParamOp param, int64_t layer);

/// The checkpoint names and shapes of all parameters.
std::map<std::string, llvm::SmallVector<int64_t>>
parameterShapes(const mlir::rota::Model &model);

/// The loss alone, through `embed`, each layer's `forward`, and `loss`.
llvm::FailureOr<Step> evaluate(const mlir::rota::Model &model,
                               const Tensors &parameters,
                               llvm::ArrayRef<Microbatch> microbatches,
                               const Options &options = {});

/// Loss and gradients of a differentiated model, through `forward` and
/// `backward` or `backward_input` and `backward_weight`, as Model.h says.
llvm::FailureOr<Step> differentiate(const mlir::rota::Model &model,
                                    const Tensors &parameters,
                                    llvm::ArrayRef<Microbatch> microbatches,
                                    const Options &options = {});

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_MODELRUN_H
