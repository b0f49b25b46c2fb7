// SPDX-License-Identifier: Apache-2.0
//
// The rows of each expert of a grouped product, over all sequences, in parts
// that are multiplied at once.
#ifndef ROTA_RUNTIME_DEVICE_CPU_EXPERTROWS_H
#define ROTA_RUNTIME_DEVICE_CPU_EXPERTROWS_H

#include "runtime/GroupedAbi.h"
#include "runtime/device/FullExperts.h"
#include "runtime/device/cpu/RowStretch.h"

#include <cstddef>
#include <span>
#include <vector>

namespace rota {

/// Rows are numbered over all sequences.
class ExpertRows {
public:
  /// Some rows of an expert: those of all its stretches, in order.
  struct Part {
    int64_t expert = 0, rows = 0;
    std::span<const RowStretch> stretches;
  };

  /// `counts` as in rotaGroupedGemm. A part has at most so many rows; a product
  /// reads a weight once for each.
  ExpertRows(const RotaGroupedGemm &g, const int32_t *counts, int64_t mostRows);
  ExpertRows(const ExpertRows &) = delete;

  /// The first block whose experts have more rows than it, with its experts as
  /// the call numbers them. There are no parts then.
  const FullExperts &full() const { return overfull; }

  std::span<const Part> partsOf(int64_t expert) const {
    return std::span(all).subspan(begins[expert],
                                  begins[expert + 1] - begins[expert]);
  }
  /// So threads that take one part after another end at about one time.
  std::vector<const Part *> largestFirst() const;
  /// Rows after those of a block's last expert.
  std::span<const RowStretch> unused() const { return rest; }

private:
  void find(const RotaGroupedGemm &g, const int32_t *counts);
  /// Adds the parts of an expert whose rows of each sequence are these, and the
  /// number of each part's first stretch.
  void cut(int64_t expert, std::span<RowStretch> ofSequences,
           std::vector<size_t> &firsts);

  int64_t mostRows;
  FullExperts overfull;
  std::vector<RowStretch> found; // [expert][sequence]
  std::vector<RowStretch> stretches, rest;
  std::vector<Part> all;      // in the order of experts
  std::vector<size_t> begins; // of each expert's parts, and the end
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_EXPERTROWS_H
