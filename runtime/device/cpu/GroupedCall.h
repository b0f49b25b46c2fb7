// SPDX-License-Identifier: Apache-2.0
//
// A call of rotaGroupedGemm or of its gradient, and how it is cut into pieces
// for threads.
#ifndef ROTA_RUNTIME_DEVICE_CPU_GROUPEDCALL_H
#define ROTA_RUNTIME_DEVICE_CPU_GROUPEDCALL_H

#include "runtime/GroupedAbi.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/cpu/ExpertRows.h"
#include "runtime/device/cpu/PanelKernels.h"
#include "runtime/device/cpu/Scratch.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace rota {

/// Operands of one call.
struct GroupedCall {
  RotaContext *context;
  const RotaGroupedGemm &g;
  const ExpertRows &rows;
  const char *a, *b;
  char *c;

  int64_t bytesA() const { return elementBytes(g.typeA); }
  int64_t bytesC() const { return elementBytes(g.typeC); }
};

/// The columns of C, or its rows, cut evenly; the last part may be narrower.
struct ColumnTiles {
  ColumnTiles(int64_t all, int64_t unit, int64_t most)
      : width(evenPart(all, most, unit)), count(ceilDiv(all, width)),
        last(all - (count - 1) * width) {}
  int64_t of(int64_t part) const { return part + 1 == count ? last : width; }
  int64_t width, count, last;
};

/// How wide the parts of C are: multiples of a unit, up to the most, of which
/// each thread has a few.
struct TileWidths {
  int64_t unit, most, tilesOfThread;
};

/// Where each of `parts` parts of a call is cut so.
inline ColumnTiles tilesFor(const GroupedCall &call, int64_t all, int64_t parts,
                            TileWidths widths) {
  constexpr int64_t kLeast = 512;
  int64_t tiles = widths.tilesOfThread * threadLimit(call.context);
  int64_t width = all / ceilDiv(tiles, std::max<int64_t>(parts, 1));
  return {all, widths.unit, std::min(std::max(width, kLeast), widths.most)};
}

/// The product of some rows of an expert by some columns of its matrix.
inline RotaGemm rowTile(const RotaGroupedGemm &g, int64_t height,
                        int64_t width) {
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

/// A part of the gradient of a matrix, from `depth` rows of its expert.
inline RotaGemm depthTile(const RotaGroupedGemm &g, int64_t height,
                          int64_t width, int64_t depth) {
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
  tile.typeC = g.typeC;
  tile.accumulate = g.accumulate;
  return tile;
}

/// Runs `piece(number)` for each piece, on any thread; an exception fails the
/// call.
template <typename Piece>
void runPieces(const GroupedCall &call, int64_t pieces, const char *what,
               Piece piece) {
  parallelPieces(call.context, pieces, [&](int64_t number) {
    try {
      piece(number);
    } catch (const std::exception &error) {
      reportFailure(call.context, std::string(what) + ": " + error.what());
    }
  });
}

/// Runs `multiply(part, column)` for each part of the rows and of the columns,
/// and clears rows of C without an expert where C is not added to.
template <typename Multiply>
void multiplyParts(const GroupedCall &call, const ColumnTiles &columns,
                   Multiply multiply) {
  std::vector<const ExpertRows::Part *> parts = call.rows.largestFirst();
  auto products = int64_t(parts.size()) * columns.count;
  auto cleared = call.g.accumulate ? 0 : int64_t(call.rows.unused().size());
  runPieces(call, products + cleared, "rows of experts", [&](int64_t piece) {
    if (piece < products)
      return multiply(*parts[piece / columns.count], piece % columns.count);
    const RowStretch &unused = call.rows.unused()[piece - products];
    int64_t bytes = call.g.out * call.bytesC();
    std::memset(call.c + unused.first * bytes, 0, unused.count * bytes);
  });
}

/// The call with a PanelProduct for each piece.
///
/// Rows that meet a part of a matrix which is packed once; a gradient sums over
/// all rows of an expert at once.
constexpr ExpertRows::Heights kPanelRows = {/*unit=*/1, /*most=*/1024};
constexpr ExpertRows::Heights kPanelSums = {
    /*unit=*/1, /*most=*/std::numeric_limits<int32_t>::max()};
void multiplyByPanels(const GroupedCall &call, const PanelKernels &kernels);
void sumByPanels(const GroupedCall &call, const PanelKernels &kernels);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_GROUPEDCALL_H
