// SPDX-License-Identifier: Apache-2.0
//
// Which source each sequence of a run comes from. The shares are integers c_0,
// c_1, ...; of every C = c_0 + c_1 + ... sequences that follow a multiple of C
// exactly c_s are of source s, evenly spread.
//
// Source 0 gets of the first n sequences floor((n c_0 + h) / C), with h = C / 2
// rounded down; the others are divided among sources 1, 2, ... likewise, with
// the sum of their shares in place of C. So the source of sequence n, and how
// many of its sequences come before, follow from n without a walk or a table.
// These counts differ from n c_s / C by less than half the number of sources
// and 1.
#ifndef ROTA_RUNTIME_DATA_MIXTURE_H
#define ROTA_RUNTIME_DATA_MIXTURE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rota {

class Mixture {
public:
  /// At least one share; shares and sums of shares from 1 to 2^62.
  explicit Mixture(std::vector<int64_t> shares);

  struct Place {
    size_t source;
    int64_t number; // among the sequences of that source
  };
  /// The place of sequence n >= 0 of the run.
  Place at(int64_t n) const;
  /// Sequences of the source among the first n of the run.
  int64_t countBefore(int64_t n, size_t source) const;

  double share(size_t source) const;

private:
  std::vector<int64_t> shares;
  std::vector<int64_t> rests; // sum of the shares from each source on
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_MIXTURE_H
