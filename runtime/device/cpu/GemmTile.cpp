// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/GemmTile.h"

#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/GemmConvert.h"
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/device/cpu/PanelProduct.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace rota {
namespace {

/// Operands that are copied are taken this many of k at a time.
constexpr int64_t kCopiedDepth = 512;
/// Elements between the rows of a copy, so that rows of a power of two elements
/// do not share their places in the caches.
constexpr int64_t kGap = 16;
/// Compiled primitives a thread keeps; a model needs a few dozen.
constexpr size_t kMaxPrimitives = 512;

/// Memory of a thread that runs tiles.
struct Worker {
  static Worker &get() {
    thread_local Worker worker;
    return worker;
  }

  Scratch library;  // asked for by oneDNN
  Scratch operands; // copies of them
};

void runProduct(const OneDnnProduct &product, Worker &worker, const void *a,
                const void *b, void *c) {
  product.run(a, b, c, worker.library.get(product.scratchBytes()));
}

/// The shape of a copy in f32, with gaps between its rows.
struct Panel {
  int64_t rows = 0, columns = 0;

  int64_t stride() const { return columns + kGap; }
  int64_t size() const { return rows * stride(); }
};

} // namespace

/// The product of one tile shape, whatever its types: a PanelProduct where the
/// processor has one, else oneDNN's. Where oneDNN has no code for the types, or
/// is slow with operands whose rows are a step of k, f32 copies of parts of the
/// operands are multiplied.
class GemmTile {
public:
  explicit GemmTile(const RotaGemm &g) : g(g), panels(PanelProduct::make(g)) {
    if (panels)
      return;
    bool isF32 =
        g.typeA == ROTA_F32 && g.typeB == ROTA_F32 && g.typeC == ROTA_F32;
    if (isF32 && OneDnnProduct::readsInPlace(g)) {
      int64_t crowded = g.transposeA ? kCrowdedStride : kVeryCrowdedStride;
      copiesA = g.transposeA && g.lda % crowded == 0 && g.n >= kLeastReuse;
      copiesB = !g.transposeB && g.ldb % crowded == 0 && g.m >= kLeastReuse;
    }
    if (!copiesA && !copiesB) {
      direct = OneDnnProduct::make(g, /*mayBeSlow=*/false);
      if (direct)
        return;
      copiesA = copiesB = true;
      copiesC = g.typeC != ROTA_F32;
    }
    if (g.k >= kCopiedDepth)
      block = blockOf(kCopiedDepth);
    if (g.k % kCopiedDepth != 0)
      last = blockOf(g.k % kCopiedDepth);
  }

  void run(const void *a, const void *b, void *c) const {
    Worker &worker = Worker::get();
    if (panels)
      return panels->run(a, b, c, worker.operands);
    if (direct)
      return runProduct(*direct, worker, a, b, c);
    runBlocks(worker, static_cast<const char *>(a),
              static_cast<const char *>(b), c);
  }

private:
  /// Products with a transposed A are slow where rows are a multiple of so many
  /// elements apart: on a Zen 3, of 94 GFLOP/s of a core, 46 at a multiple of
  /// 1,024 and 72 at 768 without copies, 80 with them. Others are slow at the
  /// second distance: 45 at 1,024, with copies 84; 66 at 512, with copies 87;
  /// 84 and 89 at 768. At 1,920, copies would cost 3 %.
  static constexpr int64_t kCrowdedStride = 128, kVeryCrowdedStride = 256;
  /// The other operand's rows or columns from which a copy takes less time than
  /// it saves.
  static constexpr int64_t kLeastReuse = 128;

  Panel panelOfA(int64_t depth) const {
    return g.transposeA ? Panel{depth, g.m} : Panel{g.m, depth};
  }
  Panel panelOfB(int64_t depth) const {
    return g.transposeB ? Panel{g.n, depth} : Panel{depth, g.n};
  }
  Panel panelOfC() const { return {g.m, g.n}; }

  std::unique_ptr<OneDnnProduct> blockOf(int64_t depth) const {
    RotaGemm block = g;
    block.k = depth;
    block.typeA = block.typeB = block.typeC = ROTA_F32;
    block.accumulate = 1;
    if (copiesA)
      block.lda = panelOfA(depth).stride();
    if (copiesB)
      block.ldb = panelOfB(depth).stride();
    if (copiesC)
      block.ldc = panelOfC().stride();
    return OneDnnProduct::make(block, /*mayBeSlow=*/true);
  }

  void runBlocks(Worker &worker, const char *a, const char *b, void *c) const {
    int64_t depth = std::min(g.k, kCopiedDepth);
    int64_t sizeA = copiesA ? panelOfA(depth).size() : 0;
    int64_t sizeB = copiesB ? panelOfB(depth).size() : 0;
    int64_t sizeC = copiesC ? panelOfC().size() : 0;
    auto *a32 = static_cast<float *>(
        worker.operands.get((sizeA + sizeB + sizeC) * sizeof(float)));
    float *b32 = a32 + sizeA, *c32 = b32 + sizeB;
    if (!copiesC)
      c32 = static_cast<float *>(c);
    int64_t strideC = copiesC ? panelOfC().stride() : g.ldc;
    if (!g.accumulate)
      for (int64_t row = 0; row < g.m; ++row)
        std::fill_n(c32 + row * strideC, g.n, 0.0f);
    else if (copiesC)
      widenRows(c, g.typeC, g.ldc, g.m, g.n, c32, strideC);
    for (int64_t k = 0; k < g.k; k += kCopiedDepth) {
      int64_t part = std::min(kCopiedDepth, g.k - k);
      const void *partA =
          a + k * (g.transposeA ? g.lda : 1) * elementBytes(g.typeA);
      const void *partB =
          b + k * (g.transposeB ? 1 : g.ldb) * elementBytes(g.typeB);
      if (copiesA)
        partA = copy(partA, g.typeA, g.lda, panelOfA(part), a32);
      if (copiesB)
        partB = copy(partB, g.typeB, g.ldb, panelOfB(part), b32);
      runProduct(part == kCopiedDepth ? *block : *last, worker, partA, partB,
                 c32);
    }
    if (copiesC)
      narrowRows(c32, strideC, g.typeC, g.ldc, g.m, g.n, c);
  }

  static const void *copy(const void *from, int32_t type, int64_t stride,
                          const Panel &shape, float *to) {
    widenRows(from, type, stride, shape.rows, shape.columns, to,
              shape.stride());
    return to;
  }

  RotaGemm g;
  std::optional<PanelProduct> panels; // or oneDNN's below
  bool copiesA = false, copiesB = false, copiesC = false;
  std::unique_ptr<OneDnnProduct> direct;      // or the two below
  std::unique_ptr<OneDnnProduct> block, last; // of kCopiedDepth, of the rest
};

namespace {
/// The tiles that a thread has compiled, by description.
class TileCache {
public:
  GemmTileRef get(const RotaGemm &tile) {
    std::string key(reinterpret_cast<const char *>(&tile), sizeof tile);
    auto it = tiles.find(key);
    if (it != tiles.end())
      return it->second;
    if (tiles.size() >= kMaxPrimitives)
      tiles.clear();
    return tiles[key] = std::make_shared<GemmTile>(tile);
  }
  static TileCache &get() {
    thread_local TileCache cache;
    return cache;
  }

private:
  std::unordered_map<std::string, GemmTileRef> tiles;
};
} // namespace

GemmTileRef findGemmTile(const RotaGemm &tile) {
  if (PanelProduct::kernelsFor(tile))
    return std::make_shared<GemmTile>(tile); // nothing is compiled
  return TileCache::get().get(tile);
}

Scratch &operandScratch() { return Worker::get().operands; }

void runGemmTile(const GemmTile &tile, const void *a, const void *b, void *c) {
  tile.run(a, b, c);
}

} // namespace rota
