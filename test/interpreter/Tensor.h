// SPDX-License-Identifier: Apache-2.0
//
// The values of the reference interpreter: dense tensors in f64, whatever the
// element type of the IR.
#ifndef ROTA_TEST_INTERPRETER_TENSOR_H
#define ROTA_TEST_INTERPRETER_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rota::interpreter {

/// Product of the sizes; 1 for a scalar.
int64_t elementCount(llvm::ArrayRef<int64_t> shape);

/// A row-major tensor. Integers and booleans are held as f64 too, exactly.
struct Tensor {
  Tensor() = default;
  /// Zeros.
  explicit Tensor(llvm::ArrayRef<int64_t> shape)
      : shape(shape), elements(elementCount(shape)) {}
  Tensor(llvm::ArrayRef<int64_t> shape, std::vector<double> elements);

  /// A tensor of rank 0.
  static Tensor scalar(double value) {
    return Tensor(llvm::ArrayRef<int64_t>(), {value});
  }

  int64_t size() const { return elements.size(); }
  int64_t rank() const { return shape.size(); }
  int64_t dim(int64_t index) const { return shape[index]; }

  /// The place of an index, one number per dimension.
  int64_t offset(llvm::ArrayRef<int64_t> index) const;
  double &operator()(llvm::ArrayRef<int64_t> index) {
    return elements[offset(index)];
  }
  double operator()(llvm::ArrayRef<int64_t> index) const {
    return elements[offset(index)];
  }
  double &operator[](int64_t position) { return elements[position]; }
  double operator[](int64_t position) const { return elements[position]; }

  /// Elementwise; shapes are equal.
  Tensor &operator+=(const Tensor &other);
  Tensor &operator*=(double factor);

  llvm::SmallVector<int64_t, 4> shape;
  std::vector<double> elements;
};

/// Tensors by name, in a fixed order.
using Tensors = std::map<std::string, Tensor>;

/// Distance between neighbours in each dimension, in elements.
llvm::SmallVector<int64_t, 4> strides(llvm::ArrayRef<int64_t> shape);

/// The nearest bf16 value, ties to even; NaN and infinities stay.
double roundToBF16(double value);

/// Largest |a - b| over largest |b| (over 1 when b is all zero). Infinite when
/// the shapes differ or a value is not finite in one alone.
double relativeError(const Tensor &a, const Tensor &b);

/// Sum of the products of corresponding elements.
double dot(const Tensor &a, const Tensor &b);

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_TENSOR_H
