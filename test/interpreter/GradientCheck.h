// SPDX-License-Identifier: Apache-2.0
//
// Derivatives by central finite differences in f64, and functions that compute
// them through an op's own rule, to compare the two.
#ifndef ROTA_TEST_INTERPRETER_GRADIENTCHECK_H
#define ROTA_TEST_INTERPRETER_GRADIENTCHECK_H

#include "test/interpreter/Interpreter.h"

#include <random>

namespace rota::interpreter {

/// Values for tests; the same seed gives the same values everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  /// Uniform in [low, high).
  double uniform(double low, double high);
  Tensor uniform(llvm::ArrayRef<int64_t> shape, double low, double high);
  /// Integers from 0 to end - 1.
  Tensor integers(llvm::ArrayRef<int64_t> shape, int64_t end);

private:
  std::mt19937_64 engine;
};

/// (f(x + h) - f(x - h)) / 2h for each element of `x`; `f` reads `x` and sees
/// each change. With h = 1e-4 the error is about h^2 = 1e-8 of the third
/// derivative plus 1e-12 of rounding. NaN where `f` fails.
Tensor finiteDifferences(Tensor &x,
                         llvm::function_ref<llvm::FailureOr<double>()> f,
                         double h = 1e-4);

/// Builds beside `function`, whose body is one op on its arguments, the
/// function `name` that returns the cotangents of those operands that `needed`
/// asks for and that have one. Its arguments are those of `function`, then the
/// cotangents of the results in `weighed`. Calls the op's own rule. `results`
/// receives for each result of the new function the operand's number.
llvm::FailureOr<mlir::func::FuncOp>
buildVjp(mlir::func::FuncOp function, llvm::StringRef name,
         llvm::ArrayRef<bool> needed, llvm::ArrayRef<bool> weighed,
         llvm::SmallVectorImpl<unsigned> &results);

/// Compares `gradient`, a function as `buildVjp` builds, with finite
/// differences of `function` at `arguments`, for random cotangents. Returns the
/// largest relative error, infinity when something does not run.
double gradientError(mlir::func::FuncOp function, mlir::func::FuncOp gradient,
                     llvm::ArrayRef<Tensor> arguments,
                     llvm::ArrayRef<bool> weighed,
                     llvm::ArrayRef<unsigned> results);

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_GRADIENTCHECK_H
