// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by groups. Groups have any number of rows, and oneDNN
// compiles code for each size: heights are therefore multiples of a unit. Rows
// of an expert that do not lie together, or are no such multiple, go through
// copies that end in zeros. The parts of an expert's rows depend on the counts
// and not on threads, and so do the bits of a row.
#include "runtime/GroupedAbi.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/Profile.h"
#include "runtime/device/cpu/GemmTile.h"
#include "runtime/device/cpu/GroupedCall.h"
#include "runtime/device/cpu/PanelProduct.h"
#include "runtime/program/Convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace rota {
namespace {

/// oneDNN compiles code for each height.
constexpr ExpertRows::Heights kHeights = {ROTA_GROUP_UNIT, 256};
constexpr TileWidths kWidths = {.unit = 64, .most = 512, .tilesOfThread = 4};

/// Rows of an expert in memory: `bytes` of each, `stride` bytes apart.
struct StridedPart {
  char *first; // of row 0 of the first sequence
  int64_t stride, bytes;
};

/// Copies the part's rows together, and zeros up to the padded rows.
void gather(const ExpertRows::Part &part, const StridedPart &rows, char *to) {
  for (const RowStretch &stretch : part.stretches)
    for (int64_t row = 0; row < stretch.count; ++row, to += rows.bytes)
      std::memcpy(to, rows.first + (stretch.first + row) * rows.stride,
                  rows.bytes);
  std::memset(to, 0, (part.paddedRows - part.rows) * rows.bytes);
}

/// The part's rows, one after another: in place where they can be multiplied
/// there, else in `copy`.
const char *together(const ExpertRows::Part &part, const StridedPart &rows,
                     char *copy) {
  if (part.isInPlace())
    return rows.first + part.stretches.front().first * rows.stride;
  gather(part, rows, copy);
  return copy;
}

/// Copies rows that lie together back.
void scatter(const ExpertRows::Part &part, const char *from,
             const StridedPart &rows) {
  for (const RowStretch &stretch : part.stretches)
    for (int64_t row = 0; row < stretch.count; ++row, from += rows.bytes)
      std::memcpy(rows.first + (stretch.first + row) * rows.stride, from,
                  rows.bytes);
}

/// Memory of the calling thread for copies of rows.
char *copySpace(int64_t bytes) {
  thread_local Scratch memory;
  return static_cast<char *>(memory.get(bytes));
}

//===----------------------------------------------------------------------===//
// Rows by matrices
//===----------------------------------------------------------------------===//

/// Tiles by height, then [is last column][is of copies].
using RowTiles = std::map<int64_t, std::array<std::array<GemmTileRef, 2>, 2>>;

/// Compiled here, by one thread.
RowTiles findRowTiles(const GroupedCall &call, const ColumnTiles &columns) {
  RowTiles tiles;
  for (const ExpertRows::Part &part : call.rows.parts())
    for (bool isLast : {false, true}) {
      int64_t height = part.paddedRows;
      bool isCopied = !part.isInPlace();
      GemmTileRef &tile = tiles[height][isLast][isCopied];
      if (tile)
        continue;
      RotaGemm gemm =
          rowTile(call.g, height, isLast ? columns.last : columns.width);
      if (isCopied)
        gemm.ldc = gemm.n;
      tile = findGemmTile(gemm);
    }
  return tiles;
}

/// A part of one expert's rows, in one part of the columns.
void multiplyRows(const GroupedCall &call, const RowTiles &tiles,
                  const ColumnTiles &columns, int64_t column,
                  const ExpertRows::Part &part) {
  const RotaGroupedGemm &g = call.g;
  int64_t from = column * columns.width;
  bool isLast = column + 1 == columns.count;
  int64_t rowA = g.in * call.bytesA(), rowC = g.out * call.bytesC();
  const char *b =
      call.b + (part.expert * g.in * g.out + from * (g.transposed ? g.in : 1)) *
                   call.bytesA();
  StridedPart a{const_cast<char *>(call.a), rowA, rowA};
  StridedPart c{call.c + from * call.bytesC(), rowC,
                columns.of(column) * call.bytesC()};
  const auto &tile = tiles.at(part.paddedRows)[isLast];
  if (part.isInPlace()) {
    int64_t row = part.stretches.front().first;
    return runGemmTile(*tile[0], a.first + row * rowA, b, c.first + row * rowC);
  }
  char *copyA = copySpace(part.paddedRows * (a.bytes + c.bytes));
  char *copyC = copyA + part.paddedRows * a.bytes;
  gather(part, a, copyA);
  if (g.accumulate)
    gather(part, c, copyC);
  runGemmTile(*tile[1], copyA, b, copyC);
  scatter(part, copyC, c);
}

void multiplyAll(const GroupedCall &call) {
  const RotaGroupedGemm &g = call.g;
  ColumnTiles columns =
      tilesFor(call, g.out, int64_t(call.rows.parts().size()), kWidths);
  RowTiles tiles = findRowTiles(call, columns);
  multiplyParts(call, columns,
                [&](const ExpertRows::Part &part, int64_t column) {
                  multiplyRows(call, tiles, columns, column, part);
                });
}

//===----------------------------------------------------------------------===//
// Gradients of matrices
//===----------------------------------------------------------------------===//

/// Tiles by depth, then [is last row][is last column][is of copies].
using DepthTiles =
    std::map<int64_t, std::array<std::array<std::array<GemmTileRef, 2>, 2>, 2>>;

/// Of rows in f32, in place or in copies.
RotaGemm sumTile(const RotaGroupedGemm &g, int64_t height, int64_t width,
                 int64_t depth, bool isCopied) {
  RotaGemm tile = depthTile(g, height, width, depth);
  if (isCopied) {
    tile.lda = height;
    tile.ldb = width;
  }
  tile.typeC = ROTA_F32;
  tile.accumulate = 1;
  return tile;
}

DepthTiles findDepthTiles(const GroupedCall &call, const ColumnTiles &m,
                          const ColumnTiles &n) {
  DepthTiles tiles;
  for (const ExpertRows::Part &part : call.rows.parts())
    for (int last = 0; last < 4; ++last) {
      int64_t depth = part.paddedRows;
      bool isCopied = !part.isInPlace();
      GemmTileRef &tile = tiles[depth][last / 2][last % 2][isCopied];
      if (!tile)
        tile =
            findGemmTile(sumTile(call.g, last / 2 ? m.last : m.width,
                                 last % 2 ? n.last : n.width, depth, isCopied));
    }
  return tiles;
}

/// Adds a part of an expert's rows to rows `tile` of the expert's matrix, `c`.
void addRows(const GroupedCall &call, const DepthTiles &tiles,
             const ColumnTiles &m, const ColumnTiles &n, int64_t tile,
             const ExpertRows::Part &part, char *c) {
  const RotaGroupedGemm &g = call.g;
  int64_t rowA = g.in * call.bytesA(), rowB = g.out * call.bytesA();
  StridedPart a{const_cast<char *>(call.a) + tile * m.width * call.bytesA(),
                rowA, m.of(tile) * call.bytesA()};
  const auto &of = tiles.at(part.paddedRows)[tile + 1 == m.count];
  bool isCopied = !part.isInPlace();
  int64_t mostB = n.width * call.bytesA();
  char *copyB =
      isCopied ? copySpace(part.paddedRows * (mostB + a.bytes)) : nullptr;
  const char *partA =
      together(part, a, isCopied ? copyB + part.paddedRows * mostB : nullptr);
  for (int64_t j = 0; j < n.count; ++j) {
    StridedPart b{const_cast<char *>(call.b) + j * n.width * call.bytesA(),
                  rowB, n.of(j) * call.bytesA()};
    runGemmTile(*of[j + 1 == n.count][isCopied], partA,
                together(part, b, copyB),
                c + j * n.width * int64_t(sizeof(float)));
  }
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
  ColumnTiles m = tilesFor(call, g.in, g.experts, kWidths);
  ColumnTiles n(g.out, kWidths.unit, kWidths.most);
  DepthTiles tiles = findDepthTiles(call, m, n);
  runPieces(call, g.experts * m.count, "gradient of experts",
            [&](int64_t piece) {
              int64_t expert = piece / m.count, tile = piece % m.count;
              PartSums sums(call, m.of(tile) * g.out,
                            call.c + (expert * g.in + tile * m.width) * g.out *
                                         call.bytesC());
              for (const ExpertRows::Part &part : call.rows.partsOf(expert))
                addRows(call, tiles, m, n, tile, part, sums.data());
              sums.finish();
            });
}

/// Runs one of both on the call's operands, for the profile as the product of
/// all rows; reports a block whose experts have more rows than it.
void run(RotaContext *context, const RotaGroupedGemm &g, const void *a,
         const void *b, const int32_t *counts, const int32_t *offset, void *c,
         bool isGradient, void (*withOneDnn)(const GroupedCall &),
         void (*withPanels)(const GroupedCall &, const PanelKernels &)) {
  ProfiledScope scope(context);
  try {
    const PanelKernels *kernels = PanelProduct::kernelsFor(rowTile(g, 1, 1));
    ExpertRows rows(g, counts,
                    !kernels     ? kHeights
                    : isGradient ? kPanelSums
                                 : kPanelRows);
    GroupedCall call{context,
                     g,
                     rows,
                     static_cast<const char *>(a),
                     static_cast<const char *>(b),
                     static_cast<char *>(c)};
    FullExperts full = rows.full();
    full.firstExpert += offset ? *offset : 0;
    if (full.rows > 0)
      reportFailure(context, toString(full));
    else if (kernels)
      withPanels(call, *kernels);
    else
      withOneDnn(call);
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
            rota::multiplyAll, rota::multiplyByPanels);
}

void rotaGroupedGemmGrad(RotaContext *context, const RotaGroupedGemm *gemm,
                         const void *a, const void *b, const int32_t *counts,
                         void *c) {
  rota::run(context, *gemm, a, b, counts, /*offset=*/nullptr, c,
            /*isGradient=*/true, rota::sumAll, rota::sumByPanels);
}
