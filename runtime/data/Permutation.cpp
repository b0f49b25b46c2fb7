// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Permutation.h"

#include <cmath>

namespace rota {

Permutation::Permutation(int64_t size, RandomStream stream)
    : size(size), a(static_cast<int64_t>(std::sqrt(static_cast<double>(size)))),
      stream(stream) {
  while (a * a < size) // rounding of the square root included
    ++a;
  b = (size + a - 1) / a;
}

int64_t Permutation::at(int64_t i) const {
  constexpr uint64_t kRounds = 8;
  do {
    int64_t left = i / b, right = i % b;
    for (uint64_t round = 0; round < kRounds; round += 2) {
      left += stream.below(round << 32 | static_cast<uint64_t>(right), a);
      left -= left >= a ? a : 0;
      right += stream.below((round + 1) << 32 | static_cast<uint64_t>(left), b);
      right -= right >= b ? b : 0;
    }
    i = left * b + right;
  } while (i >= size);
  return i;
}

} // namespace rota
