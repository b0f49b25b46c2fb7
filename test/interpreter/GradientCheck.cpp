// SPDX-License-Identifier: Apache-2.0
//
// Derivatives by finite differences and by an op's own rule.
#include "test/interpreter/GradientCheck.h"

#include "mlir/IR/IRMapping.h"

#include <cmath>
#include <limits>

using namespace rota::interpreter;
using llvm::failure;
using llvm::FailureOr;

double Random::uniform(double low, double high) {
  // Not std::uniform_real_distribution, whose values differ between libraries.
  return low + (high - low) * double(engine() >> 11) * 0x1.0p-53;
}

Tensor Random::uniform(llvm::ArrayRef<int64_t> shape, double low, double high) {
  Tensor tensor(shape);
  for (double &element : tensor.elements)
    element = uniform(low, high);
  return tensor;
}

Tensor Random::integers(llvm::ArrayRef<int64_t> shape, int64_t end) {
  Tensor tensor(shape);
  for (double &element : tensor.elements)
    element = double(engine() % uint64_t(end));
  return tensor;
}

Tensor rota::interpreter::finiteDifferences(
    Tensor &x, llvm::function_ref<FailureOr<double>()> f, double h) {
  Tensor derivative(x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    double at = x[i];
    x[i] = at + h;
    FailureOr<double> above = f();
    x[i] = at - h;
    FailureOr<double> below = f();
    x[i] = at;
    derivative[i] =
        failed(above) || failed(below) ? NAN : (*above - *below) / (2 * h);
  }
  return derivative;
}

FailureOr<mlir::func::FuncOp>
rota::interpreter::buildVjp(mlir::func::FuncOp function, llvm::StringRef name,
                            llvm::ArrayRef<bool> needed,
                            llvm::ArrayRef<bool> weighed,
                            llvm::SmallVectorImpl<unsigned> &results) {
  mlir::Operation &op = function.getBody().front().front();
  mlir::OpBuilder builder(function);
  llvm::SmallVector<mlir::Type> inputs(function.getArgumentTypes());
  for (auto [result, isWeighed] : llvm::zip_equal(op.getResults(), weighed))
    if (isWeighed)
      inputs.push_back(result.getType());
  auto gradient = mlir::func::FuncOp::create(
      builder, function.getLoc(), name, builder.getFunctionType(inputs, {}));
  mlir::Block *body = gradient.addEntryBlock();
  builder.setInsertionPointToStart(body);
  mlir::IRMapping mapping;
  unsigned count = function.getNumArguments();
  mapping.map(function.getArguments(), body->getArguments().take_front(count));
  mlir::Operation *copy = builder.clone(op, mapping);
  llvm::SmallVector<mlir::Value> cotangents;
  for (bool isWeighed : weighed)
    cotangents.push_back(isWeighed ? mlir::Value(body->getArgument(count++))
                                   : mlir::Value());
  auto rule = llvm::dyn_cast<mlir::rota::DifferentiableOpInterface>(copy);
  if (!rule)
    return op.emitOpError("has no derivative");
  auto derivatives = rule.vjp(builder, cotangents, needed);
  if (failed(derivatives))
    return failure();
  llvm::SmallVector<mlir::Value> returned;
  for (auto [index, value] : llvm::enumerate(*derivatives))
    if (value && needed[index]) {
      results.push_back(index);
      returned.push_back(value);
    }
  mlir::func::ReturnOp::create(builder, function.getLoc(), returned);
  gradient.setType(
      builder.getFunctionType(inputs, mlir::ValueRange(returned).getTypes()));
  return gradient;
}

double rota::interpreter::gradientError(mlir::func::FuncOp function,
                                        mlir::func::FuncOp gradient,
                                        llvm::ArrayRef<Tensor> arguments,
                                        llvm::ArrayRef<bool> weighed,
                                        llvm::ArrayRef<unsigned> results) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Random random(7);
  llvm::SmallVector<Tensor> inputs(arguments), cotangents;
  auto values = runFunction(function, inputs);
  if (failed(values) || values->size() < weighed.size())
    return infinity;
  for (auto [index, isWeighed] : llvm::enumerate(weighed))
    if (isWeighed)
      cotangents.push_back(random.uniform((*values)[index].shape, -1, 1));
  // sum over the weighed results of <cotangent, result>
  auto weighedSum = [&]() -> FailureOr<double> {
    auto values = runFunction(function, inputs);
    if (failed(values))
      return failure();
    double sum = 0;
    for (unsigned index = 0, next = 0; index < weighed.size(); ++index)
      if (weighed[index])
        sum += dot(cotangents[next++], (*values)[index]);
    return sum;
  };
  llvm::SmallVector<Tensor> operands(arguments);
  operands.append(cotangents);
  auto derivatives = runFunction(gradient, operands);
  if (failed(derivatives))
    return infinity;
  double error = 0;
  for (auto [operand, derivative] : llvm::zip_equal(results, *derivatives)) {
    Tensor expected = finiteDifferences(inputs[operand], weighedSum);
    error = std::max(error, relativeError(derivative, expected));
  }
  return error;
}
