// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Mixture.h"

#include <utility>

namespace rota {

Mixture::Mixture(std::vector<int64_t> given)
    : shares(std::move(given)), rests(shares) {
  for (size_t s = rests.size() - 1; s-- > 0;)
    rests[s] += rests[s + 1];
}

/// The number of sequences among the first n that go to `share` of `all`.
static int64_t portion(int64_t n, int64_t share, int64_t all) {
  return static_cast<int64_t>(
      (static_cast<unsigned __int128>(n) * share + all / 2) / all);
}

Mixture::Place Mixture::at(int64_t n) const {
  for (size_t s = 0;; ++s) {
    int64_t before = portion(n, shares[s], rests[s]);
    if (portion(n + 1, shares[s], rests[s]) > before)
      return {s, before};
    n -= before;
  }
}

int64_t Mixture::countBefore(int64_t n, size_t source) const {
  for (size_t s = 0; s < source; ++s)
    n -= portion(n, shares[s], rests[s]);
  return portion(n, shares[source], rests[source]);
}

double Mixture::share(size_t source) const {
  return static_cast<double>(shares[source]) / static_cast<double>(rests[0]);
}

} // namespace rota
