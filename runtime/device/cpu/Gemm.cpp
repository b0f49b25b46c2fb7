// SPDX-License-Identifier: Apache-2.0
//
// rotaGemm: tiles of the product, which the runtime's own parallel loop runs.
#include "runtime/device/cpu/Gemm.h"

#include "runtime/device/GemmShape.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/cpu/GemmTile.h"
#include "runtime/device/cpu/PanelProduct.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

namespace rota {
namespace {

/// The largest tile: its operands' panels and C stay in a second-level cache.
/// With a transposed A, wide tiles are some 5 % faster; with a plain one a tile
/// as wide as C would take the newer code (below) where that is slower.
constexpr int64_t kMaxTileM = 512, kMaxTileN = 512, kMaxTransposedTileN = 1024;
/// Tiles are halved until there are this many ...
constexpr int64_t kWantedTiles = 8;
/// ... or until a tile has fewer multiplications than this.
constexpr int64_t kMinTileWork = int64_t(1) << 23;
constexpr int64_t kMinTileM = 64, kMinTileN = 128;
/// oneDNN's newer code takes only matrices without gaps between rows: whole
/// rows of C. With a plain A (and, in f32, a transposed B) it is 5 to 20 %
/// faster in panels of 128 rows or more than the older code in square tiles
/// (measured on Zen 5 with AVX512-BF16). Larger B are left to square tiles: a
/// tile must not take long, since another rank may wait for the core.
constexpr int64_t kPanelM = 256, kSmallPanelM = 128, kMinPanels = 4;
constexpr int64_t kMaxPanelB = int64_t(1) << 22;

/// A tile of `m` x `n` elements, as a product of its own.
RotaGemm tileOf(const RotaGemm &g, int64_t m, int64_t n) {
  RotaGemm tile = g;
  tile.batch = 1;
  tile.m = m;
  tile.n = n;
  tile.strideA = tile.strideB = tile.strideC = 0;
  tile.transposeA = g.transposeA != 0;
  tile.transposeB = g.transposeB != 0;
  tile.accumulate = g.accumulate != 0;
  return tile;
}

void runTiles(RotaContext *context, const RotaGemm &g, const char *a,
              const char *b, char *c) {
  GemmTiles cut = tileGemm(g, threadLimit(context));
  // Compiled here, by one thread.
  GemmTileRef tiles[4];
  std::array<RotaGemm, 4> forms = tilesOf(g, cut);
  for (int i = 0; i < 4; ++i)
    tiles[i] = findGemmTile(forms[i]);
  int64_t perBatch = cut.countM * cut.countN;
  parallelPieces(context, g.batch * perBatch, [&](int64_t piece) {
    int64_t batch = piece / perBatch;
    int64_t i = piece % perBatch / cut.countN, j = piece % cut.countN;
    int64_t row = i * cut.tileM, column = j * cut.tileN;
    int64_t fromA = batch * g.strideA + row * (g.transposeA ? 1 : g.lda);
    int64_t fromB = batch * g.strideB + column * (g.transposeB ? g.ldb : 1);
    int64_t toC = batch * g.strideC + row * g.ldc + column;
    try {
      int form = 2 * (i + 1 == cut.countM) + (j + 1 == cut.countN);
      runGemmTile(*tiles[form], a + fromA * elementBytes(g.typeA),
                  b + fromB * elementBytes(g.typeB),
                  c + toC * elementBytes(g.typeC));
    } catch (const std::exception &error) {
      reportFailure(context, toString(g) + ": " + error.what());
    }
  });
}

} // namespace

/// Rows of a panel of whole rows where C is best cut so, else 0.
static int64_t panelRows(const RotaGemm &g) {
  bool isDense = g.lda == g.k && g.ldb == (g.transposeB ? g.k : g.n) &&
                 g.ldc == g.n && !g.transposeA;
  bool isFaster = g.transposeB || g.typeA == ROTA_BF16;
  if (!isDense || !isFaster || g.n * g.k > kMaxPanelB || g.m < 2 * kSmallPanelM)
    return 0;
  return g.m >= kMinPanels * kPanelM ? kPanelM : kSmallPanelM;
}

/// Tiles of a PanelProduct: those that take the least time on so many threads,
/// if they have work enough. A tile packs its columns of B, and reads or packs
/// its rows of A.
static GemmTiles tilePanels(const RotaGemm &g, const PanelTiling &tiling,
                            int threads) {
  int64_t mostM = std::min(g.m, tiling.mostM);
  int64_t mostN = std::min(g.n, tiling.mostN);
  int64_t costA = g.transposeA ? tiling.packA : tiling.readA;
  // The lesser of two upper bounds, the first of which is exact for one thread,
  // the second for equal tiles.
  auto timeOf = [&](int64_t m, int64_t n) {
    int64_t countM = ceilDiv(g.m, m), countN = ceilDiv(g.n, n);
    int64_t largest = m * n + tiling.packB * n + costA * m;
    int64_t all = g.batch * (g.m * g.n + tiling.packB * g.n * countM +
                             costA * g.m * countN);
    return std::min((all + largest * (threads - 1)) / threads,
                    ceilDiv(g.batch * countM * countN, threads) * largest);
  };
  GemmTiles best = {};
  best.tileM = mostM;
  best.tileN = mostN;
  if (mostM * mostN * g.k < 2 * tiling.leastWork)
    return best;
  int64_t least = timeOf(mostM, mostN);
  int64_t unitM = tiling.unitM, unitN = tiling.unitN;
  for (int64_t m = unitM; m < mostM + unitM; m += unitM)
    for (int64_t n = unitN; n < mostN + unitN; n += unitN) {
      int64_t tileM = std::min(m, mostM), tileN = std::min(n, mostN);
      if (tileM * tileN * g.k < tiling.leastWork)
        continue;
      int64_t time = timeOf(tileM, tileN);
      if (time >= least)
        continue;
      least = time;
      best.tileM = tileM;
      best.tileN = tileN;
    }
  return best;
}

/// Tiles of oneDNN.
static GemmTiles tileCalls(const RotaGemm &g) {
  GemmTiles cut = {};
  if (int64_t rows = panelRows(g)) {
    cut.tileM = rows;
    cut.tileN = g.n;
    return cut;
  }
  cut.tileM = evenPart(g.m, kMaxTileM, 32);
  cut.tileN = evenPart(g.n, g.transposeA ? kMaxTransposedTileN : kMaxTileN, 64);
  auto count = [&] {
    return ceilDiv(g.m, cut.tileM) * ceilDiv(g.n, cut.tileN);
  };
  auto isWorth = [&] {
    return cut.tileM * cut.tileN * g.k >= 2 * kMinTileWork;
  };
  while (g.batch * count() < kWantedTiles && isWorth()) {
    int64_t height = g.transposeA ? 2 * cut.tileM : cut.tileM;
    if (height >= cut.tileN && cut.tileM > kMinTileM)
      cut.tileM = evenPart(cut.tileM, ceilDiv(cut.tileM, 2), 32);
    else if (cut.tileN > kMinTileN)
      cut.tileN = evenPart(cut.tileN, ceilDiv(cut.tileN, 2), 64);
    else
      break;
  }
  return cut;
}

GemmTiles tileGemm(const RotaGemm &g, int threads) {
  const PanelKernels *kernels = PanelProduct::kernelsFor(g);
  GemmTiles cut =
      kernels ? tilePanels(g, kernels->sizes.tiling, threads) : tileCalls(g);
  cut.countM = ceilDiv(g.m, cut.tileM);
  cut.countN = ceilDiv(g.n, cut.tileN);
  return cut;
}

std::array<RotaGemm, 4> tilesOf(const RotaGemm &g, const GemmTiles &cut) {
  int64_t lastM = g.m - (cut.countM - 1) * cut.tileM;
  int64_t lastN = g.n - (cut.countN - 1) * cut.tileN;
  return {tileOf(g, cut.tileM, cut.tileN), tileOf(g, cut.tileM, lastN),
          tileOf(g, lastM, cut.tileN), tileOf(g, lastM, lastN)};
}

void clearResult(const RotaGemm &g, void *c) {
  if (g.accumulate)
    return;
  int64_t bytes = elementBytes(g.typeC);
  for (int64_t batch = 0; batch < g.batch; ++batch)
    for (int64_t row = 0; row < g.m; ++row)
      std::memset(static_cast<char *>(c) +
                      (batch * g.strideC + row * g.ldc) * bytes,
                  0, g.n * bytes);
}

void multiplyOnCpu(RotaContext *context, const RotaGemm &g, const void *a,
                   const void *b, void *c) {
  if (auto fault = findFault(g))
    return reportFailure(context, toString(g) + ": " + *fault);
  if (g.batch == 0 || g.m == 0 || g.n == 0)
    return;
  if (g.k == 0)
    return clearResult(g, c);
  try {
    runTiles(context, g, static_cast<const char *>(a),
             static_cast<const char *>(b), static_cast<char *>(c));
  } catch (const std::exception &error) {
    reportFailure(context, toString(g) + ": " + error.what());
  }
}

} // namespace rota
