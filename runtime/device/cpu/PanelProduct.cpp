// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelProduct.h"

#include "runtime/device/GemmShape.h"

#include <algorithm>
#include <vector>

namespace rota {
namespace {

constexpr int64_t kWordBytes = 4, kLineBytes = 64;
/// Rows of A that are packed at a time.
constexpr int64_t kPackedRows = 64;
/// So few rows of A stay in the second-level cache. Fewer columns of B are then
/// packed at a time: nothing asks for the first ones early.
constexpr int64_t kFewRows = 256;

/// An operand from `data` on, whose elements along k lie `stride` elements
/// apart, or else its columns do.
PanelSource sourceOf(const void *data, int64_t stride, bool isStrideOfK,
                     int64_t elementBytes) {
  auto *bytes = static_cast<const char *>(data);
  if (isStrideOfK)
    return {bytes, stride * elementBytes, elementBytes, 0};
  return {bytes, elementBytes, stride * elementBytes, 0};
}

/// A part of the operand along k.
PanelSource partOf(PanelSource source, const RowStretch &part) {
  source.data += part.first * source.strideK;
  source.k = part.count;
  return source;
}

/// Elements of k that whole words of these have.
int64_t inWords(const RowStretch &stretch, const PanelSizes &sizes) {
  return ceilDiv(stretch.count, sizes.elements) * sizes.elements;
}

/// Elements [first, first + count) of k as they are counted in depthOf.
std::vector<RowStretch> partOfK(std::span<const RowStretch> rows, int64_t first,
                                int64_t count, const PanelSizes &sizes) {
  std::vector<RowStretch> parts;
  for (const RowStretch &stretch : rows) {
    int64_t from = std::max<int64_t>(first, 0),
            to = std::min(first + count, stretch.count);
    if (from < to)
      parts.push_back({stretch.first + from, to - from});
    first -= inWords(stretch, sizes);
  }
  return parts;
}

/// Columns of B, or rows of A, from `first` on.
PanelSource columnsOf(PanelSource source, int64_t first) {
  source.data += first * source.strideColumn;
  return source;
}

int64_t bytesOf(const PanelResult &result) {
  return elementBytes(result.isBf16 ? ROTA_BF16 : ROTA_F32);
}

PanelResult rowsOf(PanelResult result, int64_t first) {
  result.data = static_cast<char *>(result.data) +
                first * result.stride * bytesOf(result);
  return result;
}

/// Whether all rows of A are packed.
bool mustPackRows(const RotaGemm &g, const PanelSizes &sizes) {
  int64_t crowded = sizes.crowdedStride, bytes = sizes.elementBytes;
  bool hasWords = sizes.elements * bytes == kWordBytes &&
                  g.k % (sizes.elements * sizes.words) == 0;
  return g.transposeA || !hasWords ||
         (crowded > 0 && g.lda * bytes % crowded == 0);
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
  PanelSource a, b;                 // the whole operands
  std::span<const RowStretch> m;    // rows of A and C
  std::vector<RowStretch> k, nextK; // of this part of k, and of the next
  PanelResult c;
  bool hasSums; // C has rows of `m` one after another
  int64_t words;
  int elements; // of a word
  char *packedA, *packedB;

  template <typename Pack>
  void pack(const PanelSource &operand, char *to, Pack packPart) const {
    PanelPlace place{to, words};
    for (const RowStretch &part : k) {
      packPart(partOf(operand, part), place);
      place.first += ceilDiv(part.count, elements);
    }
  }
};

/// Asks the memory for rows of bytes that are read next, some at each step,
/// since a core waits for a few lines at a time.
class PanelProduct::Prefetch {
public:
  /// Some columns of an operand, from its first on, in these parts of k.
  Prefetch(const PanelSource &source, std::span<const RowStretch> parts,
           int64_t columns, int64_t steps, int64_t elementBytes)
      : source(source), parts(parts) {
    if (parts.empty() || columns <= 0)
      return;
    areNeighbours = source.strideColumn == elementBytes;
    int64_t elements = areNeighbours ? columns : parts.front().count;
    bytes = elements * elementBytes;
    if (!areNeighbours)
      left = columns;
    else
      for (const RowStretch &part : parts)
        left += part.count;
    some = ceilDiv(left, steps);
  }

  void step() {
    for (int64_t i = 0; i < some && left > 0; ++i, --left)
      ask(areNeighbours ? nextOfK()
                        : partOf(source, parts.front()).data +
                              asked++ * source.strideColumn);
  }

private:
  const char *nextOfK() {
    if (asked == parts.front().count) {
      parts = parts.subspan(1);
      asked = 0;
    }
    return source.data + (parts.front().first + asked++) * source.strideK;
  }

  void ask(const char *row) const {
    for (int64_t byte = 0; byte < bytes; byte += kLineBytes)
      __builtin_prefetch(row + byte, /*rw=*/0, /*locality=*/2);
  }

  PanelSource source;
  std::span<const RowStretch> parts; // the first has the next rows
  bool areNeighbours = false;
  int64_t asked = 0; // rows of the first part, or columns
  int64_t left = 0, some = 0, bytes = 0;
};

/// Columns of B that are packed.
struct PanelProduct::ColumnGroup {
  const Block &block;
  int64_t first, count;
  Prefetch next; // columns that are packed after these

  /// The panel that begins with this column of the group.
  char *panel(int64_t column) const {
    return block.packedB + column * block.words * kWordBytes;
  }
};

PanelProduct::PanelProduct(const RotaGemm &gemm, const PanelKernels &kernels)
    : g(gemm), kernels(&kernels), sizes(kernels.sizes),
      packsRows(mustPackRows(gemm, sizes)),
      panelWidth(sizes.vectors * sizes.lanes),
      depth(evenPart(gemm.k, sizes.elements * sizes.mostWords,
                     sizes.elements * sizes.lanes)) {
  int64_t bytes = wordsOf(depth) * panelWidth * kWordBytes;
  bool readsRows = !packsRows && g.m >= sizes.rowsInPlace;
  int64_t most = readsRows ? sizes.packedBytes : sizes.packedBytesWithRows;
  if (readsRows && g.m <= kFewRows)
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

int64_t PanelProduct::wordsOf(int64_t k) const {
  return ceilDiv(k, sizes.elements * sizes.words) * sizes.words;
}

int64_t PanelProduct::depthOf(std::span<const RowStretch> rows,
                              const PanelKernels &kernels) {
  int64_t depth = 0;
  for (const RowStretch &stretch : rows)
    depth += inWords(stretch, kernels.sizes);
  return depth;
}

void PanelProduct::run(const void *a, const void *b, void *c,
                       Scratch &scratch) const {
  RowStretch all{0, g.transposeA ? g.k : g.m};
  run(a, b, c, {&all, 1}, scratch);
}

void PanelProduct::run(const void *a, const void *b, void *c,
                       std::span<const RowStretch> rows,
                       Scratch &scratch) const {
  RowStretch allM{0, g.m}, allK{0, g.k};
  std::span<const RowStretch> m = rows, k = {&allK, 1};
  if (g.transposeA)
    m = {&allM, 1}, k = rows;
  int64_t words = wordsOf(depth);
  // Sums of several blocks are rounded once.
  bool keepsSums = g.typeC == ROTA_BF16 && depth < g.k;
  int64_t bytesB = words * groupColumns * kWordBytes;
  int64_t bytesA = words * kPackedRows * kWordBytes;
  int64_t bytesC = keepsSums ? g.m * g.n * int64_t(sizeof(float)) : 0;
  auto *memory = static_cast<char *>(scratch.get(bytesB + bytesA + bytesC));
  auto *sums = reinterpret_cast<float *>(memory + bytesB + bytesA);
  PanelResult result{c, g.ldc, g.typeC == ROTA_BF16, g.accumulate != 0};
  Registers registers(*kernels);
  for (int64_t first = 0; first < g.k; first += depth) {
    int64_t count = std::min(depth, g.k - first);
    Block block{sourceOf(a, g.lda, g.transposeA != 0, sizes.elementBytes),
                sourceOf(b, g.ldb, g.transposeB == 0, sizes.elementBytes),
                m,
                partOfK(k, first, count, sizes),
                partOfK(k, first + count, depth, sizes),
                result,
                keepsSums,
                wordsOf(count),
                sizes.elements,
                memory + bytesB,
                memory};
    if (keepsSums)
      block.c = {sums, g.n, /*isBf16=*/false, /*adds=*/first > 0};
    else
      block.c.adds |= first > 0;
    addBlock(block);
  }
  if (!keepsSums)
    return;
  for (const RowStretch &stretch : m) {
    kernels->store(sums, g.n, stretch.count, g.n,
                   rowsOf(result, stretch.first));
    sums += stretch.count * g.n;
  }
}

void PanelProduct::addBlock(const Block &block) const {
  for (int64_t column = 0; column < g.n; column += groupColumns) {
    int64_t count = std::min(groupColumns, g.n - column);
    int64_t left = g.n - column - count;
    int64_t steps = ceilDiv(g.m, sizes.rows) * ceilDiv(count, panelWidth);
    bool isLast = left == 0;
    Prefetch next(columnsOf(block.b, isLast ? 0 : column + count),
                  isLast ? block.nextK : block.k,
                  std::min(groupColumns, isLast ? g.n : left), steps,
                  sizes.elementBytes);
    ColumnGroup group{block, column, count, next};
    block.pack(block.b, block.packedB,
               [&](const PanelSource &part, const PanelPlace &place) {
                 kernels->pack(part, column, count, sizes.vectors, place);
               });
    int64_t sum = 0; // number of the stretch's first row
    for (const RowStretch &rows : block.m) {
      int64_t row = block.hasSums ? sum : rows.first;
      multiplyInPlace(group, rows, row);
      multiplyPacked(group, rows, row);
      sum += rows.count;
    }
  }
}

int64_t PanelProduct::rowsInPlace(const RowStretch &rows) const {
  return packsRows ? 0 : rows.count / sizes.rowsInPlace * sizes.rowsInPlace;
}

void PanelProduct::multiplyInPlace(ColumnGroup &group, const RowStretch &rows,
                                   int64_t row) const {
  const Block &block = group.block;
  int64_t panels = ceilDiv(group.count, panelWidth), all = rowsInPlace(rows);
  for (int64_t done = 0; done < all; done += sizes.rows) {
    int64_t count = std::min<int64_t>(sizes.rows, all - done);
    PanelSource part = columnsOf(block.a, rows.first + done);
    Prefetch next(columnsOf(part, count), block.k,
                  std::min(count, rows.count - done - count), panels,
                  sizes.elementBytes);
    const char *data = partOf(part, block.k.front()).data;
    multiplyPanels(group, {block.words, {data, part.strideColumn, kWordBytes}},
                   row + done, count, next);
  }
}

void PanelProduct::multiplyPacked(ColumnGroup &group, const RowStretch &rows,
                                  int64_t row) const {
  const Block &block = group.block;
  int64_t panels = ceilDiv(group.count, panelWidth);
  for (int64_t done = rowsInPlace(rows); done < rows.count;
       done += kPackedRows) {
    int64_t first = rows.first + done, left = rows.count - done;
    int64_t count = std::min(kPackedRows, left);
    block.pack(block.a, block.packedA,
               [&](const PanelSource &part, const PanelPlace &place) {
                 kernels->packRows(part, first, count, place);
               });
    Prefetch next(columnsOf(block.a, first + count), block.k,
                  std::min(kPackedRows, left - count),
                  ceilDiv(count, sizes.rows) * panels, sizes.elementBytes);
    for (int64_t i = 0; i < count; i += sizes.rows)
      multiplyPanels(
          group,
          {block.words, kernels->packedRows(block.packedA, i, block.words)},
          row + done + i, std::min<int64_t>(sizes.rows, count - i), next);
  }
}

void PanelProduct::multiplyPanels(ColumnGroup &group, PanelBlock operands,
                                  int64_t row, int64_t rows,
                                  Prefetch &next) const {
  PanelResult result = rowsOf(group.block.c, row);
  int64_t bytes = bytesOf(result), stride = result.stride * bytes;
  char *c = static_cast<char *>(result.data) + group.first * bytes;
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
