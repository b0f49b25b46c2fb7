// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelProduct.h"

#include "runtime/device/GemmShape.h"

#include <algorithm>

namespace rota {
namespace {

/// Pairs of k in a block: some rows of A and the panel of B that they meet stay
/// in the first two levels of cache.
constexpr int64_t kMostPairs = 512;
constexpr int64_t kPairBytes = 4, kLineBytes = 64;
/// Bytes of B that are packed at a time: most of a second-level cache of 1 MiB,
/// which packed rows of A share. With half of it, weight gradients take 3 %
/// longer, since their rows of A are packed twice as often.
constexpr int64_t kPackedBytes = 800 << 10;
/// Rows of A that are packed at a time.
constexpr int64_t kPackedRows = 64;
/// The largest block of sums.
constexpr int64_t kMostSums = 512;

/// `k` elements from `data` on, which lie `stride` elements apart, or else the
/// columns do.
PanelSource sourceOf(const void *data, int64_t stride, bool isStrideOfK,
                     int64_t k) {
  constexpr int64_t kBytes = elementBytes(ROTA_BF16);
  auto *bytes = static_cast<const char *>(data);
  if (isStrideOfK)
    return {bytes, stride * kBytes, kBytes, k};
  return {bytes, kBytes, stride * kBytes, k};
}

PanelSource partOf(PanelSource source, int64_t k, int64_t count) {
  source.data += k * source.strideK;
  source.k = count;
  return source;
}

} // namespace

/// A part of k.
struct PanelProduct::Block {
  PanelSource a, b;
  PanelResult c;
  int64_t pairs;
  char *packedA, *packedB;
};

/// Columns of B that are packed.
struct PanelProduct::ColumnGroup {
  const Block &block;
  int64_t first, count;

  /// The panel that begins with this column of the group.
  char *panel(int64_t column) const {
    return block.packedB + column * block.pairs * kPairBytes;
  }
};

/// Asks the memory for rows of bytes that are read next, some at each step,
/// since a core waits for a few lines at a time.
class PanelProduct::Prefetch {
public:
  Prefetch(const char *data, int64_t stride, int64_t rows, int64_t bytes,
           int64_t steps)
      : next(data), stride(stride), left(rows), some(ceilDiv(rows, steps)),
        bytes(bytes) {}

  void step() {
    for (int64_t i = 0; i < some && left > 0; ++i, --left, next += stride)
      for (int64_t byte = 0; byte < bytes; byte += kLineBytes)
        __builtin_prefetch(next + byte, /*rw=*/0, /*locality=*/2);
  }

private:
  const char *next;
  int64_t stride, left, some, bytes;
};

PanelProduct::PanelProduct(const RotaGemm &gemm, const PanelKernels &kernels)
    : g(gemm), kernels(&kernels), packsA(gemm.transposeA || gemm.k % 2 != 0),
      panelWidth(kernels.vectors * kernels.lanes),
      depth(evenPart(gemm.k, 2 * kMostPairs, 2 * kernels.lanes)) {
  int64_t bytes = ceilDiv(depth, 2) * panelWidth * kPairBytes;
  int64_t panels = std::max<int64_t>(kPackedBytes / bytes, 1);
  groupColumns = evenPart(ceilDiv(g.n, panelWidth), panels, 1) * panelWidth;
}

std::optional<PanelProduct> PanelProduct::make(const RotaGemm &gemm) {
  const PanelKernels *kernels = panelKernelsOfAvx512();
  if (!kernels || gemm.typeA != ROTA_BF16 || gemm.typeB != ROTA_BF16)
    return std::nullopt;
  return PanelProduct(gemm, *kernels);
}

void PanelProduct::run(const void *a, const void *b, void *c,
                       Scratch &scratch) const {
  int64_t pairs = ceilDiv(depth, 2);
  // Sums of several blocks are rounded once.
  bool keepsSums = g.typeC == ROTA_BF16 && depth < g.k;
  int64_t bytesB = pairs * groupColumns * kPairBytes;
  int64_t bytesA = packsA ? pairs * kPackedRows * kPairBytes : 0;
  int64_t bytesC = keepsSums ? g.m * g.n * int64_t(sizeof(float)) : 0;
  auto *memory = static_cast<char *>(scratch.get(bytesB + bytesA + bytesC));
  auto *sums = reinterpret_cast<float *>(memory + bytesB + bytesA);
  PanelResult result{c, g.ldc, g.typeC == ROTA_BF16, g.accumulate != 0};
  PanelSource wholeA = sourceOf(a, g.lda, g.transposeA != 0, g.k);
  PanelSource wholeB = sourceOf(b, g.ldb, g.transposeB == 0, g.k);
  for (int64_t k = 0; k < g.k; k += depth) {
    int64_t count = std::min(depth, g.k - k);
    Block block{partOf(wholeA, k, count), partOf(wholeB, k, count), result,
                ceilDiv(count, 2),        memory + bytesB,          memory};
    if (keepsSums)
      block.c = {sums, g.n, /*isBf16=*/false, /*adds=*/k > 0};
    else
      block.c.adds |= k > 0;
    addBlock(block);
  }
  if (keepsSums)
    kernels->store(sums, g.n, g.m, g.n, result);
}

void PanelProduct::addBlock(const Block &block) const {
  for (int64_t column = 0; column < g.n; column += groupColumns) {
    ColumnGroup group{block, column, std::min(groupColumns, g.n - column)};
    kernels->pack(block.b, group.first, group.count, kernels->vectors,
                  block.packedB);
    if (packsA)
      multiplyPacked(group);
    else
      multiplyInPlace(group);
  }
}

void PanelProduct::multiplyInPlace(const ColumnGroup &group) const {
  const PanelSource &a = group.block.a;
  int64_t panels = ceilDiv(group.count, panelWidth);
  for (int64_t row = 0; row < g.m; row += kernels->rows) {
    int64_t rows = std::min<int64_t>(kernels->rows, g.m - row);
    const char *data = a.data + row * a.strideColumn;
    Prefetch next(data + rows * a.strideColumn, a.strideColumn,
                  std::min(rows, g.m - row - rows), a.k * a.strideK, panels);
    multiplyPanels(group,
                   {group.block.pairs, data, a.strideColumn, kPairBytes,
                    /*b=*/nullptr},
                   row, rows, next);
  }
}

void PanelProduct::multiplyPacked(const ColumnGroup &group) const {
  const Block &block = group.block;
  const PanelSource &a = block.a;
  int64_t panels = ceilDiv(group.count, panelWidth), lanes = kernels->lanes;
  for (int64_t first = 0; first < g.m; first += kPackedRows) {
    int64_t count = std::min(kPackedRows, g.m - first);
    kernels->pack(a, first, count, /*vectorsOfPanel=*/1, block.packedA);
    int64_t left = std::min(kPackedRows, g.m - first - count);
    Prefetch next(a.data + (first + count) * a.strideColumn, a.strideK,
                  left > 0 && g.transposeA ? a.k : 0, left * a.strideColumn,
                  ceilDiv(count, kernels->rows) * panels);
    for (int64_t row = 0; row < count; row += kernels->rows) {
      // Rows that are multiplied at a time are lanes of one vector.
      int64_t pair = row / lanes * lanes * block.pairs + row % lanes;
      multiplyPanels(group,
                     {block.pairs, block.packedA + pair * kPairBytes,
                      kPairBytes, lanes * kPairBytes, /*b=*/nullptr},
                     first + row, std::min<int64_t>(kernels->rows, count - row),
                     next);
    }
  }
}

void PanelProduct::multiplyPanels(const ColumnGroup &group, PanelBlock operands,
                                  int64_t row, int64_t rows,
                                  Prefetch &next) const {
  alignas(64) float sums[kMostSums];
  PanelResult result = group.block.c;
  int64_t bytes = result.isBf16 ? 2 : 4, stride = result.stride * bytes;
  char *c =
      static_cast<char *>(result.data) + row * stride + group.first * bytes;
  for (int64_t column = 0; column < group.count; column += panelWidth) {
    int64_t columns = std::min(panelWidth, group.count - column);
    result.data = c + column * bytes;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t byte = 0; byte < columns * bytes; byte += kLineBytes)
        __builtin_prefetch(c + i * stride + column * bytes + byte, /*rw=*/1);
    next.step();
    operands.b = group.panel(column);
    auto vectors = int(ceilDiv(columns, kernels->lanes));
    kernels->multiply(operands, int(rows), vectors, sums);
    kernels->store(sums, vectors * kernels->lanes, rows, columns, result);
  }
}

} // namespace rota
