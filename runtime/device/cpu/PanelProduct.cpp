// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelProduct.h"

#include "runtime/device/GemmShape.h"

#include <algorithm>

namespace rota {
namespace {

constexpr int64_t kPairBytes = 4, kLineBytes = 64;
/// Rows of A that are packed at a time.
constexpr int64_t kPackedRows = 64;
/// So few rows of A stay in the second-level cache. Fewer columns of B are then
/// packed at a time: nothing asks for the first ones early.
constexpr int64_t kFewRows = 256;

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

/// Columns of B, or rows of A, from `first` on.
PanelSource columnsOf(PanelSource source, int64_t first) {
  source.data += first * source.strideColumn;
  return source;
}

/// Whether all rows of A are packed.
bool packsRows(const RotaGemm &g, const PanelSizes &sizes) {
  int64_t crowded = sizes.crowdedStride;
  return g.transposeA || g.k % (2 * sizes.pairs) != 0 ||
         (crowded > 0 && g.lda * elementBytes(g.typeA) % crowded == 0);
}

/// Registers of the calling thread that kernels set up.
class Registers {
public:
  explicit Registers(const PanelKernels &kernels) : kernels(kernels) {
    if (kernels.begin)
      kernels.begin();
  }
  ~Registers() {
    if (kernels.end)
      kernels.end();
  }
  Registers(const Registers &) = delete;
  Registers &operator=(const Registers &) = delete;

private:
  const PanelKernels &kernels;
};

} // namespace

/// A part of k.
struct PanelProduct::Block {
  PanelSource a, b;
  PanelSource nextB; // of the next part, or empty
  PanelResult c;
  int64_t pairs;
  char *packedA, *packedB;
};

/// Asks the memory for rows of bytes that are read next, some at each step,
/// since a core waits for a few lines at a time.
class PanelProduct::Prefetch {
public:
  /// An operand's first columns.
  Prefetch(const PanelSource &source, int64_t columns, int64_t steps)
      : next(source.data) {
    bool areNeighbours = source.strideColumn == elementBytes(ROTA_BF16);
    stride = areNeighbours ? source.strideK : source.strideColumn;
    left = areNeighbours ? source.k : columns;
    bytes = (areNeighbours ? columns : source.k) * elementBytes(ROTA_BF16);
    if (columns <= 0)
      left = 0;
    some = ceilDiv(left, steps);
  }

  void step() {
    for (int64_t i = 0; i < some && left > 0; ++i, --left, next += stride)
      for (int64_t byte = 0; byte < bytes; byte += kLineBytes)
        __builtin_prefetch(next + byte, /*rw=*/0, /*locality=*/2);
  }

private:
  const char *next;
  int64_t stride, left, some, bytes;
};

/// Columns of B that are packed.
struct PanelProduct::ColumnGroup {
  const Block &block;
  int64_t first, count;
  Prefetch next; // columns that are packed after these

  /// The panel that begins with this column of the group.
  char *panel(int64_t column) const {
    return block.packedB + column * block.pairs * kPairBytes;
  }
};

PanelProduct::PanelProduct(const RotaGemm &gemm, const PanelKernels &kernels)
    : g(gemm), kernels(&kernels), sizes(kernels.sizes),
      rowsInPlace(packsRows(gemm, sizes)
                      ? 0
                      : gemm.m / sizes.rowsInPlace * sizes.rowsInPlace),
      panelWidth(sizes.vectors * sizes.lanes),
      depth(evenPart(gemm.k, 2 * sizes.mostPairs, 2 * sizes.lanes)) {
  int64_t bytes = pairsOf(depth) * panelWidth * kPairBytes;
  int64_t most =
      rowsInPlace > 0 ? sizes.packedBytes : sizes.packedBytesWithRows;
  if (rowsInPlace > 0 && g.m <= kFewRows)
    most /= 4;
  int64_t panels = std::max<int64_t>(most / bytes, 1);
  groupColumns = evenPart(ceilDiv(g.n, panelWidth), panels, 1) * panelWidth;
}

const PanelKernels *PanelProduct::kernelsFor(const RotaGemm &gemm) {
  bool isBf16 = gemm.typeA == ROTA_BF16 && gemm.typeB == ROTA_BF16;
  return isBf16 ? panelKernels() : nullptr;
}

std::optional<PanelProduct> PanelProduct::make(const RotaGemm &gemm) {
  if (const PanelKernels *kernels = kernelsFor(gemm))
    return PanelProduct(gemm, *kernels);
  return std::nullopt;
}

int64_t PanelProduct::pairsOf(int64_t k) const {
  return ceilDiv(k, 2 * sizes.pairs) * sizes.pairs;
}

void PanelProduct::run(const void *a, const void *b, void *c,
                       Scratch &scratch) const {
  int64_t pairs = pairsOf(depth);
  // Sums of several blocks are rounded once.
  bool keepsSums = g.typeC == ROTA_BF16 && depth < g.k;
  int64_t bytesB = pairs * groupColumns * kPairBytes;
  int64_t bytesA = rowsInPlace < g.m ? pairs * kPackedRows * kPairBytes : 0;
  int64_t bytesC = keepsSums ? g.m * g.n * int64_t(sizeof(float)) : 0;
  auto *memory = static_cast<char *>(scratch.get(bytesB + bytesA + bytesC));
  auto *sums = reinterpret_cast<float *>(memory + bytesB + bytesA);
  PanelResult result{c, g.ldc, g.typeC == ROTA_BF16, g.accumulate != 0};
  PanelSource wholeA = sourceOf(a, g.lda, g.transposeA != 0, g.k);
  PanelSource wholeB = sourceOf(b, g.ldb, g.transposeB == 0, g.k);
  Registers registers(*kernels);
  for (int64_t k = 0; k < g.k; k += depth) {
    int64_t count = std::min(depth, g.k - k);
    Block block{partOf(wholeA, k, count),
                partOf(wholeB, k, count),
                partOf(wholeB, k + count, std::min(depth, g.k - k - count)),
                result,
                pairsOf(count),
                memory + bytesB,
                memory};
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
    int64_t count = std::min(groupColumns, g.n - column);
    int64_t left = g.n - column - count;
    int64_t steps = ceilDiv(g.m, sizes.rows) * ceilDiv(count, panelWidth);
    Prefetch next(left > 0 ? columnsOf(block.b, column + count) : block.nextB,
                  std::min(groupColumns, left > 0 ? left : g.n), steps);
    ColumnGroup group{block, column, count, next};
    kernels->pack(block.b, group.first, group.count, sizes.vectors,
                  block.packedB);
    multiplyInPlace(group);
    multiplyPacked(group);
  }
}

void PanelProduct::multiplyInPlace(ColumnGroup &group) const {
  const PanelSource &a = group.block.a;
  int64_t panels = ceilDiv(group.count, panelWidth);
  for (int64_t row = 0; row < rowsInPlace; row += sizes.rows) {
    int64_t rows = std::min<int64_t>(sizes.rows, rowsInPlace - row);
    PanelSource part = columnsOf(a, row);
    Prefetch next(columnsOf(a, row + rows), std::min(rows, g.m - row - rows),
                  panels);
    multiplyPanels(group,
                   {group.block.pairs, {part.data, a.strideColumn, kPairBytes}},
                   row, rows, next);
  }
}

void PanelProduct::multiplyPacked(ColumnGroup &group) const {
  const Block &block = group.block;
  int64_t panels = ceilDiv(group.count, panelWidth);
  for (int64_t first = rowsInPlace; first < g.m; first += kPackedRows) {
    int64_t count = std::min(kPackedRows, g.m - first);
    kernels->packRows(block.a, first, count, block.packedA);
    Prefetch next(columnsOf(block.a, first + count),
                  std::min(kPackedRows, g.m - first - count),
                  ceilDiv(count, sizes.rows) * panels);
    for (int64_t row = 0; row < count; row += sizes.rows)
      multiplyPanels(
          group,
          {block.pairs, kernels->packedRows(block.packedA, row, block.pairs)},
          first + row, std::min<int64_t>(sizes.rows, count - row), next);
  }
}

void PanelProduct::multiplyPanels(ColumnGroup &group, PanelBlock operands,
                                  int64_t row, int64_t rows,
                                  Prefetch &next) const {
  PanelResult result = group.block.c;
  int64_t bytes = result.isBf16 ? 2 : 4, stride = result.stride * bytes;
  char *c =
      static_cast<char *>(result.data) + row * stride + group.first * bytes;
  int64_t ahead = sizes.readsResultFirst ? panelWidth : 0;
  for (int64_t column = 0; column < group.count; column += panelWidth) {
    int64_t asked = std::min(panelWidth, group.count - column - ahead) * bytes;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t byte = 0; byte < asked; byte += kLineBytes)
        __builtin_prefetch(c + i * stride + (column + ahead) * bytes + byte,
                           /*rw=*/1);
    next.step();
    group.next.step();
    operands.b = group.panel(column);
    result.data = c + column * bytes;
    kernels->multiply(operands, rows,
                      std::min(panelWidth, group.count - column), result);
  }
}

} // namespace rota
