// SPDX-License-Identifier: Apache-2.0
//
// Small models in rota IR for tests that compare a module before and after a
// pass, with values for their parameters and data.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_TESTMODELS_H
#define ROTA_TEST_PASSES_EQUIVALENCE_TESTMODELS_H

#include "test/interpreter/ModelRun.h"

namespace rota::interpreter {

struct TestModel {
  const char *name;
  /// `$T` stands for the type of activations and of parameters as read, `$W`
  /// for that of parameters and of values that are never bf16.
  const char *text;
  /// Tokens and targets are below this; 0: both are real numbers.
  int64_t vocabulary;
  /// A remat policy of its own names.
  const char *policy;
};

/// A linear layer and a squared error; one with auxiliary losses; a residual
/// MLP of two kinds of layer with biases and a parameter that is read twice; a
/// Llama decoder with grouped queries and tied embeddings.
llvm::ArrayRef<TestModel> testModels();

/// A Llama decoder whose sizes are powers of two, so that many meshes divide
/// them: 4 query heads over 2 key-value heads.
const TestModel &wideLlama();

/// The text with elements of `type`: "f64", "f32" or "bf16" in place of `$T`;
/// the same, but f32 instead of bf16, in place of `$W`.
std::string withElements(llvm::StringRef text, llvm::StringRef type);

/// Parameters uniform in [-0.8, 0.8).
Tensors randomParameters(const mlir::rota::Model &model, uint64_t seed);

/// Inputs and targets for a model's functions.
llvm::SmallVector<Microbatch> randomMicrobatches(const mlir::rota::Model &model,
                                                 int64_t vocabulary,
                                                 unsigned count, uint64_t seed);

/// Equal bits of losses and of every gradient.
bool isSameStep(const Step &a, const Step &b);

/// The largest relative error over loss and gradients of `a` against `b`.
double stepError(const Step &a, const Step &b);

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_TESTMODELS_H
