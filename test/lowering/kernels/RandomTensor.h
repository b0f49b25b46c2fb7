// SPDX-License-Identifier: Apache-2.0
//
// Arguments for kernels under test.
#ifndef ROTA_TEST_LOWERING_KERNELS_RANDOMTENSOR_H
#define ROTA_TEST_LOWERING_KERNELS_RANDOMTENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "test/interpreter/Tensor.h"

#include <random>

namespace rota::test {

/// A tensor of normally distributed numbers that the element type of `type`
/// holds exactly.
inline rota::interpreter::Tensor randomTensor(mlir::Type type, unsigned seed) {
  auto tensorType = llvm::cast<mlir::RankedTensorType>(type);
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  rota::interpreter::Tensor tensor(tensorType.getShape());
  for (double &element : tensor.elements) {
    element = normal(generator);
    if (tensorType.getElementType().isBF16())
      element = rota::interpreter::roundToBF16(element);
  }
  return tensor;
}

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_KERNELS_RANDOMTENSOR_H
