// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by groups. Groups have any number of rows, and oneDNN
// compiles code for each size: heights are therefore multiples of kUnit, and
// the rest of a group goes through a copy that ends in zeros. Rows are cut at
// multiples of kTileRows, whatever the groups, so that work is divided evenly
// when one expert has most rows; the bits of a row depend on the counts and not
// on threads.
#include "runtime/GroupedAbi.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/Profile.h"
#include "runtime/device/cpu/GemmTile.h"
#include "runtime/program/Convert.h"

#include <array>
#include <cstring>
#include <fmt/format.h>

namespace rota {
namespace {

constexpr int64_t kUnit = 16, kTileRows = 128;
constexpr int64_t kTileColumns = 512;
/// Rows that a tile of a weight's gradient sums at once.
constexpr int64_t kDepth = 256;

/// Operands of one call.
struct GroupedCall {
  RotaContext *context;
  const RotaGroupedGemm &g;
  const char *a, *b;
  const int32_t *counts;
  char *c;
  int64_t firstExpert; // in the model, of those that the call has

  int64_t bytesA() const { return elementBytes(g.typeA); }
  int64_t bytesC() const { return elementBytes(g.typeC); }
  int64_t rowsOfBlock() const { return g.rows / g.blocks; }
  int64_t expertsOfBlock() const { return g.experts / g.blocks; }
};

/// Calls body(expert, first, end) for the rows of each expert of a sequence,
/// numbered in the sequence, and body(-1, first, end) for those after a
/// block's last expert.
template <typename Body>
void forEachGroup(const GroupedCall &call, int64_t sequence, Body body) {
  const int32_t *counts = call.counts + sequence * call.g.experts;
  for (int64_t block = 0; block < call.g.blocks; ++block) {
    int64_t row = block * call.rowsOfBlock(), end = row + call.rowsOfBlock();
    for (int64_t i = 0; i < call.expertsOfBlock(); ++i) {
      int64_t expert = block * call.expertsOfBlock() + i;
      int64_t next = std::min<int64_t>(row + counts[expert], end);
      if (next > row)
        body(expert, row, next);
      row = next;
    }
    if (row < end)
      body(int64_t(-1), row, end);
  }
}

/// Reports a block whose experts have more rows than it has.
bool checkCounts(const GroupedCall &call) {
  for (int64_t sequence = 0; sequence < call.g.batch; ++sequence)
    for (int64_t block = 0; block < call.g.blocks; ++block) {
      int64_t first = block * call.expertsOfBlock(), sum = 0;
      const int32_t *counts = call.counts + sequence * call.g.experts + first;
      for (int64_t i = 0; i < call.expertsOfBlock(); ++i)
        sum += counts[i];
      if (sum <= call.rowsOfBlock())
        continue;
      reportFailure(
          call.context,
          fmt::format("rows of experts {} to {} in sequence {} of a "
                      "microbatch: expected at most {}, got {}",
                      call.firstExpert + first,
                      call.firstExpert + first + call.expertsOfBlock() - 1,
                      sequence, call.rowsOfBlock(), sum));
      return false;
    }
  return true;
}

/// Copies `rows` rows of `bytes` each, `stride` bytes apart, to `target`, and
/// zeros for the rest of kUnit rows.
void copyPadded(const char *source, int64_t stride, int64_t rows, int64_t bytes,
                char *target, int64_t targetStride) {
  for (int64_t row = 0; row < kUnit; ++row)
    if (row < rows)
      std::memcpy(target + row * targetStride, source + row * stride, bytes);
    else
      std::memset(target + row * targetStride, 0, bytes);
}

Scratch &scratch() {
  thread_local Scratch memory;
  return memory;
}

/// The columns of C, cut evenly; the last part may be narrower.
struct ColumnTiles {
  explicit ColumnTiles(int64_t all)
      : width(evenPart(all, kTileColumns, 64)), count(ceilDiv(all, width)),
        last(all - (count - 1) * width) {}
  int64_t of(int64_t part) const { return part + 1 == count ? last : width; }
  int64_t width, count, last;
};

//===----------------------------------------------------------------------===//
// Rows by matrices
//===----------------------------------------------------------------------===//

/// Tiles of the heights that a call needs: [height / kUnit - 1][is last
/// column].
using RowTiles = std::array<std::array<GemmTileRef, 2>, kTileRows / kUnit>;

int64_t paddedRows(int64_t rows) { return ceilDiv(rows, kUnit) * kUnit; }

/// The parts of rows [first, end) between multiples of kTileRows.
template <typename Body>
void forEachTile(int64_t first, int64_t end, Body body) {
  while (first < end) {
    int64_t next = std::min(end, (first / kTileRows + 1) * kTileRows);
    body(first, next);
    first = next;
  }
}

RotaGemm rowTile(const RotaGroupedGemm &g, int64_t height, int64_t width) {
  RotaGemm tile = {};
  tile.batch = 1;
  tile.m = height;
  tile.n = width;
  tile.k = g.in;
  tile.lda = g.in;
  tile.ldb = g.transposed ? g.in : g.out;
  tile.ldc = g.out;
  tile.transposeB = g.transposed != 0;
  tile.typeA = tile.typeB = g.typeA;
  tile.typeC = g.typeC;
  tile.accumulate = g.accumulate != 0;
  return tile;
}

/// Compiled here, by one thread.
RowTiles findRowTiles(const GroupedCall &call, const ColumnTiles &columns) {
  RowTiles tiles;
  auto need = [&](int64_t height) {
    auto &of = tiles[height / kUnit - 1];
    if (of[0])
      return;
    of[0] = findGemmTile(rowTile(call.g, height, columns.width));
    of[1] = findGemmTile(rowTile(call.g, height, columns.last));
  };
  for (int64_t b = 0; b < call.g.batch; ++b)
    forEachGroup(call, b, [&](int64_t expert, int64_t first, int64_t end) {
      if (expert >= 0)
        forEachTile(first, end, [&](int64_t from, int64_t to) {
          int64_t whole = (to - from) / kUnit * kUnit;
          if (whole > 0)
            need(whole);
          if (whole < to - from)
            need(kUnit);
        });
    });
  return tiles;
}

/// Rows [from, to) of one expert, at most kTileRows, in one part of the
/// columns.
void multiplyRows(const GroupedCall &call, const RowTiles &tiles,
                  const ColumnTiles &columns, int64_t part, int64_t expert,
                  int64_t from, int64_t to) {
  const RotaGroupedGemm &g = call.g;
  int64_t column = part * columns.width, isLast = part + 1 == columns.count;
  const char *a = call.a + from * g.in * call.bytesA();
  const char *b =
      call.b + (expert * g.in * g.out + column * (g.transposed ? g.in : 1)) *
                   call.bytesA();
  char *c = call.c + (from * g.out + column) * call.bytesC();
  int64_t whole = (to - from) / kUnit * kUnit, rest = to - from - whole;
  if (whole > 0)
    runGemmTile(*tiles[whole / kUnit - 1][isLast], a, b, c);
  if (rest == 0)
    return;
  a += whole * g.in * call.bytesA();
  c += whole * g.out * call.bytesC();
  int64_t bytesOfA = kUnit * g.in * call.bytesA();
  int64_t stride = g.out * call.bytesC(),
          bytes = columns.of(part) * call.bytesC();
  char *copyA = static_cast<char *>(scratch().get(bytesOfA + kUnit * stride));
  char *copyC = copyA + bytesOfA;
  int64_t rowA = g.in * call.bytesA();
  copyPadded(a, rowA, rest, rowA, copyA, rowA);
  copyPadded(c, stride, g.accumulate ? rest : 0, bytes, copyC, stride);
  runGemmTile(*tiles[0][isLast], copyA, b, copyC);
  for (int64_t row = 0; row < rest; ++row)
    std::memcpy(c + row * stride, copyC + row * stride, bytes);
}

void clearRows(const GroupedCall &call, const ColumnTiles &columns,
               int64_t part, int64_t from, int64_t to) {
  if (call.g.accumulate)
    return;
  for (int64_t row = from; row < to; ++row)
    std::memset(call.c +
                    (row * call.g.out + part * columns.width) * call.bytesC(),
                0, columns.of(part) * call.bytesC());
}

void multiplyAll(const GroupedCall &call) {
  const RotaGroupedGemm &g = call.g;
  ColumnTiles columns(g.out);
  RowTiles tiles = findRowTiles(call, columns);
  int64_t tilesOfSequence = ceilDiv(g.rows, kTileRows);
  parallelPieces(
      call.context, g.batch * tilesOfSequence * columns.count,
      [&](int64_t piece) {
        int64_t part = piece % columns.count, tile = piece / columns.count;
        int64_t sequence = tile / tilesOfSequence,
                begin = tile % tilesOfSequence * kTileRows;
        int64_t base = sequence * g.rows;
        try {
          forEachGroup(
              call, sequence, [&](int64_t expert, int64_t first, int64_t end) {
                first = std::max(first, begin);
                end = std::min(end, begin + kTileRows);
                if (first >= end)
                  return;
                if (expert < 0)
                  clearRows(call, columns, part, base + first, base + end);
                else
                  multiplyRows(call, tiles, columns, part, expert, base + first,
                               base + end);
              });
        } catch (const std::exception &error) {
          reportFailure(call.context,
                        std::string("rows of experts: ") + error.what());
        }
      });
}

//===----------------------------------------------------------------------===//
// Gradients of matrices
//===----------------------------------------------------------------------===//

/// Tiles by [depth / kUnit - 1][is last row][is last column].
using DepthTiles =
    std::array<std::array<std::array<GemmTileRef, 2>, 2>, kDepth / kUnit>;

RotaGemm depthTile(const RotaGroupedGemm &g, int64_t height, int64_t width,
                   int64_t depth) {
  RotaGemm tile = {};
  tile.batch = 1;
  tile.m = height;
  tile.n = width;
  tile.k = depth;
  tile.lda = g.in;
  tile.ldb = g.out;
  tile.ldc = g.out;
  tile.transposeA = 1;
  tile.typeA = tile.typeB = g.typeA;
  tile.typeC = ROTA_F32;
  tile.accumulate = 1;
  return tile;
}

/// The depths into which `rows` rows are cut: kDepth, what is left in units of
/// kUnit, and what is left then, of which body gets the number of rows.
template <typename Body> void forEachDepth(int64_t rows, Body body) {
  for (int64_t from = 0; from < rows;) {
    int64_t left = rows - from;
    int64_t depth =
        std::min(left < kUnit ? left : left / kUnit * kUnit, kDepth);
    body(from, depth);
    from += depth;
  }
}

DepthTiles findDepthTiles(const GroupedCall &call, const ColumnTiles &m,
                          const ColumnTiles &n) {
  DepthTiles tiles;
  auto need = [&](int64_t depth) {
    auto &of = tiles[depth / kUnit - 1];
    for (int last = 0; last < 4 && !of[last / 2][last % 2]; ++last)
      of[last / 2][last % 2] =
          findGemmTile(depthTile(call.g, last / 2 ? m.last : m.width,
                                 last % 2 ? n.last : n.width, depth));
  };
  for (int64_t b = 0; b < call.g.batch; ++b)
    forEachGroup(call, b, [&](int64_t expert, int64_t first, int64_t end) {
      if (expert >= 0)
        forEachDepth(end - first,
                     [&](int64_t, int64_t depth) { need(paddedRows(depth)); });
    });
  return tiles;
}

/// Adds `depth` rows from `row` on to rows `part` of the expert's matrix, `c`.
void addRows(const GroupedCall &call, const DepthTiles &tiles,
             const ColumnTiles &m, const ColumnTiles &n, int64_t part,
             int64_t row, int64_t depth, char *c) {
  const RotaGroupedGemm &g = call.g;
  int64_t rowA = g.in * call.bytesA(), rowB = g.out * call.bytesA();
  const char *a = call.a + row * rowA + part * m.width * call.bytesA();
  const char *b = call.b + row * rowB;
  if (depth % kUnit != 0) {
    char *copyA = static_cast<char *>(scratch().get(kUnit * (rowA + rowB)));
    char *copyB = copyA + kUnit * rowA;
    copyPadded(a, rowA, depth, m.of(part) * call.bytesA(), copyA, rowA);
    copyPadded(b, rowB, depth, rowB, copyB, rowB);
    a = copyA;
    b = copyB;
  }
  const auto &of = tiles[paddedRows(depth) / kUnit - 1][part + 1 == m.count];
  for (int64_t j = 0; j < n.count; ++j)
    runGemmTile(*of[j + 1 == n.count], a, b + j * n.width * call.bytesA(),
                c + j * n.width * int64_t(sizeof(float)));
}

/// Sums of rows `part` of an expert's matrix in f32, and where these are kept
/// in bf16, the place in which they are made before.
class PartSums {
public:
  PartSums(const GroupedCall &call, int64_t elements, char *place)
      : accumulates(call.g.accumulate), elements(elements), place(place),
        isNarrow(call.g.typeC == ROTA_BF16) {
    if (isNarrow)
      sums = static_cast<char *>(memory().get(elements * sizeof(float)));
    else
      sums = place;
    if (isNarrow || !accumulates)
      std::memset(sums, 0, elements * sizeof(float));
  }

  char *data() const { return sums; }

  /// Rounds them once.
  void finish() const {
    if (!isNarrow)
      return;
    auto *made = reinterpret_cast<const float *>(sums);
    auto *out = reinterpret_cast<uint16_t *>(place);
    for (int64_t i = 0; i < elements; ++i)
      out[i] = toBf16(accumulates ? fromBf16(out[i]) + made[i] : made[i]);
  }

private:
  static Scratch &memory() {
    thread_local Scratch scratch;
    return scratch;
  }
  bool accumulates;
  int64_t elements;
  char *place, *sums;
  bool isNarrow;
};

void sumAll(const GroupedCall &call) {
  const RotaGroupedGemm &g = call.g;
  ColumnTiles m(g.in), n(g.out);
  DepthTiles tiles = findDepthTiles(call, m, n);
  parallelPieces(call.context, g.experts * m.count, [&](int64_t piece) {
    int64_t expert = piece / m.count, part = piece % m.count;
    try {
      PartSums sums(call, m.of(part) * g.out,
                    call.c + (expert * g.in + part * m.width) * g.out *
                                 call.bytesC());
      for (int64_t b = 0; b < g.batch; ++b)
        forEachGroup(call, b, [&](int64_t other, int64_t first, int64_t end) {
          if (other == expert)
            forEachDepth(end - first, [&](int64_t from, int64_t depth) {
              addRows(call, tiles, m, n, part, b * g.rows + first + from, depth,
                      sums.data());
            });
        });
      sums.finish();
    } catch (const std::exception &error) {
      reportFailure(call.context,
                    std::string("gradient of experts: ") + error.what());
    }
  });
}

/// Runs `body` on the call's operands, for the profile as the product of all
/// rows.
template <typename Body>
void run(RotaContext *context, const RotaGroupedGemm &g, const void *a,
         const void *b, const int32_t *counts, const int32_t *offset, void *c,
         bool isGradient, Body body) {
  ProfiledScope scope(context);
  GroupedCall call{context,
                   g,
                   static_cast<const char *>(a),
                   static_cast<const char *>(b),
                   counts,
                   static_cast<char *>(c),
                   offset ? *offset : 0};
  try {
    if (checkCounts(call))
      body(call);
  } catch (const std::exception &error) {
    reportFailure(context, std::string("product of experts: ") + error.what());
  }
  scope.end([&](Profile &profile, Profile::Span span) {
    RotaGemm whole = rowTile(g, g.rows, g.out);
    whole.batch = g.batch;
    if (isGradient) {
      whole.m = g.in;
      whole.k = g.rows;
      whole.transposeA = 1;
    }
    profile.addGemm(whole, span);
  });
}

} // namespace
} // namespace rota

void rotaGroupedGemm(RotaContext *context, const RotaGroupedGemm *gemm,
                     const void *a, const void *b, const int32_t *counts,
                     const int32_t *offset, void *c) {
  rota::run(context, *gemm, a, b, counts, offset, c, /*isGradient=*/false,
            rota::multiplyAll);
}

void rotaGroupedGemmGrad(RotaContext *context, const RotaGroupedGemm *gemm,
                         const void *a, const void *b, const int32_t *counts,
                         void *c) {
  rota::run(context, *gemm, a, b, counts, /*offset=*/nullptr, c,
            /*isGradient=*/true, rota::sumAll);
}
