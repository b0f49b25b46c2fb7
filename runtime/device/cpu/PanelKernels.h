// SPDX-License-Identifier: Apache-2.0
//
// The parts of a product of panels (PanelProduct.h) that are written for a kind
// of processor.
//
// A *word* is 32 bits of what is multiplied: an f32, or two bf16 that are
// neighbours along k, the first in the low half; what has no partner has zero.
// A *panel* holds columns of B as [words][vectors][lanes], so that a vector has
// the same word of k of neighbouring columns. Rows of A are read where they
// lie, or packed in the form that suits the processor.
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

/// Where packed words go: into panels of `words` words, from word `first` on.
struct PanelPlace {
  char *panels;
  int64_t words, first = 0;
};

/// Rows of A: word p of row r is at `data + r * strideRow + p * strideWord`, in
/// bytes.
struct PanelRows {
  const char *data;
  int64_t strideRow, strideWord;
};

/// Some rows of A and a panel of B.
struct PanelBlock {
  int64_t words;
  PanelRows a;
  const char *b = nullptr;
};

/// Where sums go. Rows are `stride` elements apart.
struct PanelResult {
  void *data;
  int64_t stride;
  bool isBf16; // else f32
  bool adds;   // to what is there
};

/// How a product is cut into tiles, each of which one thread computes.
struct PanelTiling {
  /// Tiles are multiples of so many rows and columns, up to the most.
  int64_t unitM, unitN, mostM, mostN;
  /// Multiplications below which no tile is cut.
  int64_t leastWork = 0;
  /// To pack a column of B, or to read or pack a row of A, takes as long as the
  /// products of so many rows, or columns, with it.
  int64_t packB = 0, readA = 0, packA = 0;
};

struct PanelSizes {
  int elements;     // of k in a word
  int elementBytes; // of an operand; bf16 may become words of f32
  int lanes;        // of a vector
  int words;        // multiplied at a time; zeros complete what is packed
  int rows;         // the most that are multiplied at a time
  int vectors;      // of a panel of B
  /// Rows of A are read where they lie in multiples of so many, others packed.
  int rowsInPlace;
  /// Bytes: rows whose distance is a multiple of them share places in the first
  /// cache, and are packed. 0 where this costs more than it saves.
  int64_t crowdedStride = 0;
  /// Words of k in a block: some rows of A and the panel of B that they meet
  /// stay in the first caches.
  int64_t mostWords;
  /// Bytes of B that are packed at a time: where rows of A are read in place,
  /// and where they are packed, too, which is done once for each such part.
  int64_t packedBytes, packedBytesWithRows;
  /// Whether results that are added to are read before the products.
  bool readsResultFirst = false;
  PanelTiling tiling = {};
};

struct PanelKernels {
  PanelSizes sizes;

  /// Set up registers of the calling thread, and free them; null where there
  /// are none to set up. The other functions run in between.
  void (*begin)();
  void (*end)();
  /// Packs `columns` columns of B, the first of which is `first`, into panels
  /// of so many vectors. The last panel ends with vectors that have no numbers,
  /// and its last vector with zeros. Zeros complete the words to a multiple of
  /// PanelSizes::words.
  void (*pack)(const PanelSource &source, int64_t first, int64_t columns,
               int vectorsOfPanel, const PanelPlace &place);
  /// Packs rows of A, up to a multiple of the lanes.
  void (*packRows)(const PanelSource &source, int64_t first, int64_t rows,
                   const PanelPlace &place);
  /// Packed rows from `row` on, a multiple of PanelSizes::rows.
  PanelRows (*packedRows)(const char *packed, int64_t row, int64_t words);
  /// Sums over the block's words, in order, and stores them.
  void (*multiply)(const PanelBlock &block, int64_t rows, int64_t columns,
                   const PanelResult &result);
  /// Stores `rows` x `columns` sums, rows of which are `stride` floats apart.
  /// Rounds to bf16 once, to nearest even.
  void (*store)(const float *sums, int64_t stride, int64_t rows,
                int64_t columns, const PanelResult &result);
};

/// The kernels of this processor for products of bf16; null where they are left
/// to oneDNN.
const PanelKernels *panelKernels();

/// Kernels for operands of that type, which are multiplied in f32 by vectors of
/// 512, 256 or 128 bits; null where the processor has none of these.
const PanelKernels *floatKernels(int32_t type, int vectorBits);
/// Those with the widest vectors of this processor.
const PanelKernels &floatKernels(int32_t type);

/// Kernels for AVX-512 BF16; null where the processor has none of it.
const PanelKernels *panelKernelsOfAvx512();

/// Whether the processor has AMX with products of bf16.
bool hasAmx();
/// Whether it has, and this process may use it: asks the system once.
bool mayUseAmx();
/// Kernels for AMX, which run where mayUseAmx() alone.
const PanelKernels &panelKernelsOfAmx();

/// Whether two small products by these kernels are those of a plain loop.
bool agreeWithPlainLoop(const PanelKernels &kernels);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_PANELKERNELS_H
