// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices for tests of devices: descriptions, operands, and a
// plain loop in f64 to compare with.
#ifndef ROTA_TEST_RUNTIME_GEMMCASE_H
#define ROTA_TEST_RUNTIME_GEMMCASE_H

#include "runtime/Abi.h"

#include <cstdint>
#include <vector>

namespace rota::test {

/// Elements of one type in memory, seen as doubles.
struct Buffer {
  Buffer(int32_t type, int64_t size);

  double get(int64_t i) const;
  /// Truncates to bf16: any value that the type can hold will do.
  void set(int64_t i, float value);
  void fill(unsigned seed);

  int32_t type;
  std::vector<char> bytes;
};

/// A description with `gap` unused elements after each row and batch.
RotaGemm describeGemm(int64_t batch, int64_t m, int64_t n, int64_t k, bool ta,
                      bool tb, int32_t typeA, int32_t typeB, int32_t typeC,
                      bool accumulate, int64_t gap);

/// Random matrices for a description.
struct Operands {
  explicit Operands(const RotaGemm &g);
  Buffer a, b, c;
};

/// Expects that `c` is the product of `in`, and that its gaps are those of
/// `in.c`. Terms with that share of a sum's magnitude may have been rounded
/// before the others were added.
void expectProduct(const RotaGemm &g, const Operands &in, const Buffer &c,
                   double roundedShare = 0);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_GEMMCASE_H
