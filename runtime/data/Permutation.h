// SPDX-License-Identifier: Apache-2.0
//
// A random order of the numbers 0 to size - 1 that is computed, not stored: an
// element costs the same time and no memory at any size.
//
// It is a Feistel network over Z_a x Z_b with a b >= size, as in Black and
// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002. The number
// x = l b + r is the pair (l, r). Round k = 0, 2, ... adds F_k(r) to l modulo
// a, round k = 1, 3, ... adds F_k(l) to r modulo b; F_k(v) is a draw of Philox
// with index k 2^32 + v. Each round is a bijection. Where the network ends at a
// number of `size` or more, it starts again from there (cycle walking), which
// ends, since x itself lies on the cycle. With a = ceil(sqrt(size)) and b =
// ceil(size / a) fewer than a numbers are outside, so that this is rare.
#ifndef ROTA_RUNTIME_DATA_PERMUTATION_H
#define ROTA_RUNTIME_DATA_PERMUTATION_H

#include "runtime/random/Philox.h"

namespace rota {

class Permutation {
public:
  /// An order of `size` numbers, 1 to 2^62, by the draws of `stream`.
  Permutation(int64_t size, RandomStream stream);

  /// Number `i` of the order, 0 <= i < size.
  int64_t at(int64_t i) const;

private:
  int64_t size, a, b;
  RandomStream stream;
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_PERMUTATION_H
