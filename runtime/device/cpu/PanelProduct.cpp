// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelProduct.h"

#include "runtime/device/GemmShape.h"

#include <algorithm>

namespace rota {
namespace {

constexpr int64_t kPairBytes = 4, kLineBytes = 64;
/// Rows of A that are packed at a time.
constexpr int64_t kPackedRows = 64;

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
    : g(gemm), kernels(&kernels), sizes(kernels.sizes),
      rowsInPlace(packsRows(gemm, sizes)
                      ? 0
                      : gemm.m / sizes.rowsInPlace * sizes.rowsInPlace),
      panelWidth(sizes.vectors * sizes.lanes),
      depth(evenPart(gemm.k, 2 * sizes.mostPairs, 2 * sizes.lanes)) {
  int64_t bytes = pairsOf(depth) * panelWidth * kPairBytes;
  int64_t panels = std::max<int64_t>(sizes.packedBytes / bytes, 1);
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
    Block block{partOf(wholeA, k, count), partOf(wholeB, k, count), result,
                pairsOf(count),           memory + bytesB,          memory};
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
    kernels->pack(block.b, group.first, group.count, sizes.vectors,
                  block.packedB);
    multiplyInPlace(group);
    multiplyPacked(group);
  }
}

void PanelProduct::multiplyInPlace(const ColumnGroup &group) const {
  const PanelSource &a = group.block.a;
  int64_t panels = ceilDiv(group.count, panelWidth);
  for (int64_t row = 0; row < rowsInPlace; row += sizes.rows) {
    int64_t rows = std::min<int64_t>(sizes.rows, rowsInPlace - row);
    const char *data = a.data + row * a.strideColumn;
    Prefetch next(data + rows * a.strideColumn, a.strideColumn,
                  std::min(rows, g.m - row - rows), a.k * a.strideK, panels);
    multiplyPanels(group,
                   {group.block.pairs, {data, a.strideColumn, kPairBytes}}, row,
                   rows, next);
  }
}

void PanelProduct::multiplyPacked(const ColumnGroup &group) const {
  const Block &block = group.block;
  const PanelSource &a = block.a;
  int64_t panels = ceilDiv(group.count, panelWidth);
  for (int64_t first = rowsInPlace; first < g.m; first += kPackedRows) {
    int64_t count = std::min(kPackedRows, g.m - first);
    kernels->packRows(a, first, count, block.packedA);
    int64_t left = std::min(kPackedRows, g.m - first - count);
    const char *rest = a.data + (first + count) * a.strideColumn;
    int64_t steps = ceilDiv(count, sizes.rows) * panels;
    Prefetch next = g.transposeA ? Prefetch(rest, a.strideK, left > 0 ? a.k : 0,
                                            left * a.strideColumn, steps)
                                 : Prefetch(rest, a.strideColumn, left,
                                            a.k * a.strideK, steps);
    for (int64_t row = 0; row < count; row += sizes.rows)
      multiplyPanels(
          group,
          {block.pairs, kernels->packedRows(block.packedA, row, block.pairs)},
          first + row, std::min<int64_t>(sizes.rows, count - row), next);
  }
}

void PanelProduct::multiplyPanels(const ColumnGroup &group, PanelBlock operands,
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
    operands.b = group.panel(column);
    result.data = c + column * bytes;
    kernels->multiply(operands, rows,
                      std::min(panelWidth, group.count - column), result);
  }
}

} // namespace rota
