// SPDX-License-Identifier: Apache-2.0
//
// The parts of a product of panels (PanelProduct.h) that are written for a kind
// of processor.
//
// Operands are bf16. A *pair* is two neighbours along k, the first in the low
// half of 32 bits; what has no partner has zero. A *panel* holds rows of A, or
// columns of B, as [pairs][vectors][lanes], so that a vector has the same pair
// of k of neighbouring rows or columns.
#ifndef ROTA_RUNTIME_DEVICE_CPU_PANELKERNELS_H
#define ROTA_RUNTIME_DEVICE_CPU_PANELKERNELS_H

#include <cstdint>

namespace rota {

/// An operand, or a part of one along k. Element k of a column, which is a
/// column of B or a row of A, is at `data + k * strideK + column *
/// strideColumn`, in bytes; one of the strides is that of an element.
struct PanelSource {
  const char *data;
  int64_t strideK, strideColumn;
  int64_t k; // elements
};

/// Pairs of some rows of A, where they lie or in a panel, and a panel of B.
struct PanelBlock {
  int64_t pairs;
  const char *a;
  int64_t strideRow, stridePair; // of A, in bytes
  const char *b;
};

/// Where sums go. Rows are `stride` elements apart.
struct PanelResult {
  void *data;
  int64_t stride;
  bool isBf16; // else f32
  bool adds;   // to what is there
};

struct PanelKernels {
  int lanes;   // of a vector
  int rows;    // the most that are multiplied at a time; divides `lanes`
  int vectors; // of a panel of B; one of A has one

  /// Packs `columns` columns of the source, the first of which is `first`, into
  /// panels of so many vectors. The last panel ends with vectors that have no
  /// numbers, and its last vector with zeros.
  void (*pack)(const PanelSource &source, int64_t first, int64_t columns,
               int vectorsOfPanel, char *panels);
  /// Sums over the block's pairs, in order: [rows][vectors * lanes].
  void (*multiply)(const PanelBlock &block, int rows, int vectors, float *sums);
  /// Stores `rows` x `columns` sums, rows of which are `stride` floats apart.
  /// Rounds to bf16 once, to nearest even.
  void (*store)(const float *sums, int64_t stride, int64_t rows,
                int64_t columns, const PanelResult &result);
};

/// Kernels for AVX-512 BF16; null where the processor has none, or has AMX, of
/// which oneDNN makes more.
const PanelKernels *panelKernelsOfAvx512();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_PANELKERNELS_H
