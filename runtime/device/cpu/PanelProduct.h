// SPDX-License-Identifier: Apache-2.0
//
// Products by kernels of Rota's own: operands are packed into panels
// (PanelKernels.h), so few at a time that they stay in a cache, and a block of
// sums stays in registers.
//
// An element of the result is the sum of parts of k, in order, each of which is
// summed in order from zero; AMX starts from the result itself where this is
// f32. The parts depend on k alone, so the bits of an element do not depend on
// the tile that has it.
#ifndef ROTA_RUNTIME_DEVICE_CPU_PANELPRODUCT_H
#define ROTA_RUNTIME_DEVICE_CPU_PANELPRODUCT_H

#include "runtime/Abi.h"
#include "runtime/device/cpu/PanelKernels.h"
#include "runtime/device/cpu/RowStretch.h"
#include "runtime/device/cpu/Scratch.h"

#include <cstdint>
#include <optional>
#include <span>

namespace rota {

/// A product of one description, whose batch is 1 and k is not 0. It takes the
/// rows of an operand that are given, as experts need it: rows of A and C (m of
/// them), or where A is transposed, rows of A and B (k).
class PanelProduct {
public:
  /// The types of A and B must be those of the kernels.
  PanelProduct(const RotaGemm &gemm, const PanelKernels &kernels);

  /// The kernels of this processor for the types; null where oneDNN multiplies
  /// them.
  static const PanelKernels *kernelsFor(const RotaGemm &gemm);
  /// With these kernels; nothing where there are none.
  static std::optional<PanelProduct> make(const RotaGemm &gemm);

  /// The k of a product whose sums are over these rows: a word has rows of one
  /// stretch, so an odd one may take one more.
  static int64_t depthOf(std::span<const RowStretch> rows,
                         const PanelKernels &kernels);

  /// Runs on the calling thread, to which `scratch` belongs, with the first
  /// rows, or with `rows`.
  void run(const void *a, const void *b, void *c, Scratch &scratch) const;
  void run(const void *a, const void *b, void *c,
           std::span<const RowStretch> rows, Scratch &scratch) const;

private:
  struct Block;
  struct ColumnGroup;
  class Prefetch;
  void addBlock(const Block &block) const;
  void multiplyInPlace(ColumnGroup &group, const RowStretch &rows,
                       int64_t row) const;
  void multiplyPacked(ColumnGroup &group, const RowStretch &rows,
                      int64_t row) const;
  void multiplyPanels(ColumnGroup &group, PanelBlock operands, int64_t row,
                      int64_t rows, Prefetch &next) const;

  /// Rows of a stretch that are read where they lie; the rest is packed.
  int64_t rowsInPlace(const RowStretch &rows) const;
  /// Those of so many elements of k, with zeros that complete them.
  int64_t wordsOf(int64_t k) const;

  RotaGemm g;
  const PanelKernels *kernels;
  const PanelSizes &sizes; // of the kernels
  bool packsRows;          // all of A; else whole units are read in place
  int64_t panelWidth;      // columns of a panel of B
  int64_t depth;           // elements of k in a block
  int64_t groupColumns;    // of B that are packed at a time
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_PANELPRODUCT_H
