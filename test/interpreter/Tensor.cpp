// SPDX-License-Identifier: Apache-2.0
//
// Dense tensors in f64.
#include "test/interpreter/Tensor.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

using namespace rota::interpreter;

int64_t rota::interpreter::elementCount(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor::Tensor(llvm::ArrayRef<int64_t> shape, std::vector<double> elements)
    : shape(shape), elements(std::move(elements)) {
  assert(elementCount(shape) == size() && "as many elements as the shape says");
}

int64_t Tensor::offset(llvm::ArrayRef<int64_t> index) const {
  assert(int64_t(index.size()) == rank() && "one number per dimension");
  int64_t offset = 0;
  for (int64_t i = 0; i < rank(); ++i) {
    assert(index[i] >= 0 && index[i] < shape[i] && "index within the shape");
    offset = offset * shape[i] + index[i];
  }
  return offset;
}

Tensor &Tensor::operator+=(const Tensor &other) {
  assert(shape == other.shape && "shapes are equal");
  for (int64_t i = 0; i < size(); ++i)
    elements[i] += other.elements[i];
  return *this;
}

Tensor &Tensor::operator*=(double factor) {
  for (double &element : elements)
    element *= factor;
  return *this;
}

llvm::SmallVector<int64_t, 4>
rota::interpreter::strides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

double rota::interpreter::roundToBF16(double value) {
  if (!std::isfinite(value))
    return value;
  // Through f32, as hardware does: bf16 is its upper half.
  float single = float(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  bits += 0x7fff + ((bits >> 16) & 1);
  bits &= 0xffff0000u;
  std::memcpy(&single, &bits, sizeof(single));
  return single;
}

double rota::interpreter::relativeError(const Tensor &a, const Tensor &b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.shape != b.shape)
    return infinity;
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] && !std::isfinite(a[i]))
      continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
      return infinity;
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / (largest > 0 ? largest : 1);
}

double rota::interpreter::dot(const Tensor &a, const Tensor &b) {
  assert(a.shape == b.shape && "shapes are equal");
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}
