// SPDX-License-Identifier: Apache-2.0
//
// Steps of training on one batch, with the module's update functions: the
// reference for the loss curve of a compiled program.
#ifndef ROTA_TEST_INTERPRETER_TRAINRUN_H
#define ROTA_TEST_INTERPRETER_TRAINRUN_H

#include "test/interpreter/ModelRun.h"

namespace rota::interpreter {

struct TrainSettings {
  int64_t steps = 0;
  double learningRate = 0.0; // for each step
};

/// The losses before each step. Gradients are not clipped. The model is
/// differentiated and has update functions of whole parameters, whose options
/// have the values that the module says. Emits an error and fails as
/// `differentiate` does.
llvm::FailureOr<std::vector<double>>
train(const mlir::rota::Model &model, Tensors parameters,
      llvm::ArrayRef<Microbatch> microbatches, const TrainSettings &settings,
      const Options &options = {});

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_TRAINRUN_H
