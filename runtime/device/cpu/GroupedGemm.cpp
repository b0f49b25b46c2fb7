// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by groups, each piece of which is a PanelProduct. It takes
// an expert's rows of all sequences where they lie: the matrix is packed once
// for all of them, and its gradient is added to once. The parts of an expert's
// rows depend on the counts and not on threads, and so do the bits of a row.
#include "runtime/GroupedAbi.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/Profile.h"
#include "runtime/device/cpu/ExpertRows.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/GemmTile.h"
#include "runtime/device/cpu/PanelProduct.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace rota {
namespace {

/// Rows that meet a part of a matrix which is packed once.
constexpr int64_t kMostRows = 1024;
/// A gradient sums over all rows of an expert at once.
constexpr int64_t kAllRows = std::numeric_limits<int32_t>::max();
/// Experts have unequal rows, so threads end together only with some more
/// pieces than products of equal rows need.
constexpr int64_t kTilesOfThread = 8;

/// Operands of one call.
struct GroupedCall {
  RotaContext *context;
  const RotaGroupedGemm &g;
  const ExpertRows &rows;
  const PanelKernels &kernels;
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

/// Cuts each of `parts` parts of a call into multiples of a unit, up to the
/// most, of which each thread has a few.
ColumnTiles tilesFor(const GroupedCall &call, int64_t all, int64_t parts,
                     int64_t unit, int64_t most) {
  constexpr int64_t kLeast = 512;
  int64_t tiles = kTilesOfThread * threadLimit(call.context);
  int64_t width = all / ceilDiv(tiles, std::max<int64_t>(parts, 1));
  return {all, unit, std::min(std::max(width, kLeast), most)};
}

/// What the products of one expert have in common.
RotaGemm describeTile(const RotaGroupedGemm &g, int64_t m, int64_t n,
                      int64_t k) {
  RotaGemm tile = {};
  tile.batch = 1;
  tile.m = m;
  tile.n = n;
  tile.k = k;
  tile.lda = g.in;
  tile.ldb = tile.ldc = g.out;
  tile.typeA = tile.typeB = g.typeA;
  tile.typeC = g.typeC;
  tile.accumulate = g.accumulate != 0;
  return tile;
}

/// The product of some rows of an expert by some columns of its matrix.
RotaGemm rowTile(const RotaGroupedGemm &g, int64_t height, int64_t width) {
  RotaGemm tile = describeTile(g, height, width, g.in);
  tile.transposeB = g.transposed != 0;
  tile.ldb = g.transposed ? g.in : g.out;
  return tile;
}

/// A part of the gradient of a matrix, from `depth` rows of its expert.
RotaGemm depthTile(const RotaGroupedGemm &g, int64_t height, int64_t width,
                   int64_t depth) {
  RotaGemm tile = describeTile(g, height, width, depth);
  tile.transposeA = 1;
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

/// Rows by matrices. Rows of C without an expert are cleared where C is not
/// added to.
void multiplyRows(const GroupedCall &call) {
  const RotaGroupedGemm &g = call.g;
  const PanelTiling &tiling = call.kernels.sizes.tiling;
  std::vector<const ExpertRows::Part *> parts = call.rows.largestFirst();
  ColumnTiles columns =
      tilesFor(call, g.out, int64_t(parts.size()), tiling.unitN, tiling.mostN);
  auto multiply = [&](const ExpertRows::Part &part, int64_t column) {
    int64_t from = column * columns.width;
    RotaGemm tile = rowTile(g, part.rows, columns.of(column));
    int64_t fromB =
        part.expert * g.in * g.out + from * (g.transposed ? g.in : 1);
    PanelProduct(tile, call.kernels)
        .run(call.a, call.b + fromB * call.bytesA(),
             call.c + from * call.bytesC(), part.stretches, operandScratch());
  };
  auto products = int64_t(parts.size()) * columns.count;
  auto cleared = g.accumulate ? 0 : int64_t(call.rows.unused().size());
  runPieces(call, products + cleared, "rows of experts", [&](int64_t piece) {
    if (piece < products)
      return multiply(*parts[piece / columns.count], piece % columns.count);
    const RowStretch &unused = call.rows.unused()[piece - products];
    int64_t bytes = g.out * call.bytesC();
    std::memset(call.c + unused.first * bytes, 0, unused.count * bytes);
  });
}

/// Gradients of matrices, also of those of experts without rows.
void sumRows(const GroupedCall &call) {
  const RotaGroupedGemm &g = call.g;
  const PanelTiling &tiling = call.kernels.sizes.tiling;
  ColumnTiles m = tilesFor(call, g.in, g.experts, tiling.unitM, tiling.mostM);
  ColumnTiles n(g.out, tiling.unitN, tiling.mostN);
  std::vector<int64_t> experts; // the largest first
  for (const ExpertRows::Part *part : call.rows.largestFirst())
    experts.push_back(part->expert);
  for (int64_t expert = 0; expert < g.experts; ++expert)
    if (call.rows.partsOf(expert).empty())
      experts.push_back(expert);
  runPieces(
      call, g.experts * m.count * n.count, "gradient of experts",
      [&](int64_t piece) {
        int64_t column = piece % n.count, row = piece / n.count % m.count;
        int64_t expert = experts[piece / n.count / m.count];
        std::span<const ExpertRows::Part> parts = call.rows.partsOf(expert);
        std::span<const RowStretch> stretches;
        if (!parts.empty())
          stretches = parts.front().stretches;
        RotaGemm tile =
            depthTile(g, m.of(row), n.of(column),
                      PanelProduct::depthOf(stretches, call.kernels));
        int64_t fromA = row * m.width, fromB = column * n.width;
        char *c =
            call.c + ((expert * g.in + fromA) * g.out + fromB) * call.bytesC();
        if (stretches.empty())
          return clearResult(tile, c);
        PanelProduct(tile, call.kernels)
            .run(call.a + fromA * call.bytesA(), call.b + fromB * call.bytesA(),
                 c, stretches, operandScratch());
      });
}

/// Runs one of both on the call's operands, for the profile as the product of
/// all rows; reports a block whose experts have more rows than it.
void run(RotaContext *context, const RotaGroupedGemm &g, const void *a,
         const void *b, const int32_t *counts, const int32_t *offset, void *c,
         bool isGradient) {
  ProfiledScope scope(context);
  try {
    const PanelKernels *found = PanelProduct::kernelsFor(rowTile(g, 1, 1));
    const PanelKernels &kernels = found ? *found : floatKernels(g.typeA);
    ExpertRows rows(g, counts, isGradient ? kAllRows : kMostRows);
    GroupedCall call{context,
                     g,
                     rows,
                     kernels,
                     static_cast<const char *>(a),
                     static_cast<const char *>(b),
                     static_cast<char *>(c)};
    FullExperts full = rows.full();
    full.firstExpert += offset ? *offset : 0;
    if (full.rows > 0)
      reportFailure(context, toString(full));
    else if (isGradient)
      sumRows(call);
    else
      multiplyRows(call);
  } catch (const std::exception &error) {
    reportFailure(context, std::string("product of experts: ") + error.what());
  }
  scope.end([&](Profile &profile, Profile::Span span) {
    RotaGemm whole = isGradient ? depthTile(g, g.in, g.out, g.rows)
                                : rowTile(g, g.rows, g.out);
    whole.batch = g.batch;
    profile.addGemm(whole, span);
  });
}

} // namespace
} // namespace rota

void rotaGroupedGemm(RotaContext *context, const RotaGroupedGemm *gemm,
                     const void *a, const void *b, const int32_t *counts,
                     const int32_t *offset, void *c) {
  rota::run(context, *gemm, a, b, counts, offset, c, /*isGradient=*/false);
}

void rotaGroupedGemmGrad(RotaContext *context, const RotaGroupedGemm *gemm,
                         const void *a, const void *b, const int32_t *counts,
                         void *c) {
  rota::run(context, *gemm, a, b, counts, /*offset=*/nullptr, c,
            /*isGradient=*/true);
}
