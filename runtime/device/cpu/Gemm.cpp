// SPDX-License-Identifier: Apache-2.0
//
// rotaGemm with oneDNN. Each thread that calls oneDNN limits OpenMP to one
// thread; the runtime's own parallel loop runs tiles in parallel. Primitives
// are compiled once per tile shape and kept per calling thread; scratch memory
// belongs to the thread that runs the tile.
#include "runtime/device/cpu/Gemm.h"

#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/GemmConvert.h"
#include "runtime/device/cpu/Parallel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

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
/// Operands that must be widened are taken this many of k at a time.
constexpr int64_t kConvertDepth = 512;
/// Compiled primitives a thread keeps; a model needs a few dozen.
constexpr size_t kMaxPrimitives = 256;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Cuts `size` into equal parts of at most `limit`, multiples of `unit`.
int64_t evenPart(int64_t size, int64_t limit, int64_t unit) {
  int64_t part = ceilDiv(size, ceilDiv(size, limit));
  return std::min(ceilDiv(part, unit) * unit, size);
}

/// Memory that grows and is never copied.
class Scratch {
public:
  void *get(size_t bytes) {
    if (bytes > size) {
      memory.reset();
      size = (bytes + 4095) / 4096 * 4096;
      memory.reset(std::aligned_alloc(4096, size));
      if (!memory) {
        size = 0;
        throw std::bad_alloc();
      }
    }
    return memory.get();
  }

private:
  struct Free {
    void operator()(void *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<void, Free> memory;
  size_t size = 0;
};

const dnnl::engine &cpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// A thread's state for running tiles. Its constructor turns off oneDNN's own
/// threads for the calling thread, in the OpenMP library that oneDNN uses.
struct Worker {
  Worker() {
    using SetThreads = void (*)(int);
    if (void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
      reinterpret_cast<SetThreads>(symbol)(1);
    stream = dnnl::stream(cpuEngine());
  }
  static Worker &get() {
    thread_local Worker worker;
    return worker;
  }

  dnnl::stream stream;
  Scratch library;  // asked for by oneDNN
  Scratch operands; // f32 copies
};

dnnl::memory::data_type libraryType(int32_t type) {
  return type == ROTA_F32 ? dnnl::memory::data_type::f32
                          : dnnl::memory::data_type::bf16;
}

dnnl::memory::desc describe(int64_t rows, int64_t columns, int64_t stride,
                            bool transposed, int32_t type) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, libraryType(type),
          transposed ? Dims{1, stride} : Dims{stride, 1}};
}

/// A compiled product of one tile shape.
class Product {
public:
  /// Null where oneDNN has no fast code for these types on this machine.
  static std::unique_ptr<Product> make(const RotaGemm &g) {
    try {
      auto product = std::make_unique<Product>(g);
      bool slow = std::strstr(product->description.impl_info_str(), "ref");
      return slow ? nullptr : std::move(product);
    } catch (const dnnl::error &error) {
      if (error.status == dnnl_unimplemented)
        return nullptr;
      throw;
    }
  }

  explicit Product(const RotaGemm &g) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (g.accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
    dnnl::matmul::desc shape(describe(g.m, g.k, g.lda, g.transposeA, g.typeA),
                             describe(g.k, g.n, g.ldb, g.transposeB, g.typeB),
                             describe(g.m, g.n, g.ldc, false, g.typeC));
    description = {shape, attributes, cpuEngine()};
    primitive = dnnl::matmul(description);
  }

  void run(Worker &worker, const void *a, const void *b, void *c) const {
    const dnnl::engine &engine = cpuEngine();
    dnnl::memory::desc scratch = description.scratchpad_desc();
    void *space = worker.library.get(scratch.get_size());
    primitive.execute(
        worker.stream,
        {{DNNL_ARG_SRC,
          {description.src_desc(), engine, const_cast<void *>(a)}},
         {DNNL_ARG_WEIGHTS,
          {description.weights_desc(), engine, const_cast<void *>(b)}},
         {DNNL_ARG_DST, {description.dst_desc(), engine, c}},
         {DNNL_ARG_SCRATCHPAD, {scratch, engine, space}}});
  }

private:
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

/// The product of one tile shape, whatever its types.
class Tile {
public:
  explicit Tile(const RotaGemm &g) : g(g), direct(Product::make(g)) {
    if (direct)
      return;
    auto blockOf = [&](int64_t depth) {
      RotaGemm block = g;
      block.k = depth;
      block.lda = g.transposeA ? g.m : depth;
      block.ldb = g.transposeB ? depth : g.n;
      block.ldc = g.n;
      block.typeA = block.typeB = block.typeC = ROTA_F32;
      block.accumulate = 1;
      return std::make_unique<Product>(block);
    };
    if (g.k >= kConvertDepth)
      block = blockOf(kConvertDepth);
    if (g.k % kConvertDepth != 0)
      last = blockOf(g.k % kConvertDepth);
  }

  void run(const void *a, const void *b, void *c) const {
    Worker &worker = Worker::get();
    if (direct)
      return direct->run(worker, a, b, c);
    runConverted(worker, static_cast<const char *>(a),
                 static_cast<const char *>(b), c);
  }

private:
  void runConverted(Worker &worker, const char *a, const char *b,
                    void *c) const {
    int64_t depth = std::min(g.k, kConvertDepth);
    float *c32 = static_cast<float *>(worker.operands.get(
        (g.m * depth + depth * g.n + g.m * g.n) * sizeof(float)));
    float *a32 = c32 + g.m * g.n, *b32 = a32 + g.m * depth;
    if (g.accumulate)
      widenRows(c, g.typeC, g.ldc, g.m, g.n, c32);
    else
      std::fill_n(c32, g.m * g.n, 0.0f);
    for (int64_t k = 0; k < g.k; k += kConvertDepth) {
      int64_t part = std::min(kConvertDepth, g.k - k);
      const char *from =
          a + k * (g.transposeA ? g.lda : 1) * elementBytes(g.typeA);
      widenRows(from, g.typeA, g.lda, g.transposeA ? part : g.m,
                g.transposeA ? g.m : part, a32);
      from = b + k * (g.transposeB ? 1 : g.ldb) * elementBytes(g.typeB);
      widenRows(from, g.typeB, g.ldb, g.transposeB ? g.n : part,
                g.transposeB ? part : g.n, b32);
      (part == kConvertDepth ? block : last)->run(worker, a32, b32, c32);
    }
    narrowRows(c32, g.typeC, g.ldc, g.m, g.n, c);
  }

  RotaGemm g;
  std::unique_ptr<Product> direct;      // or the two below
  std::unique_ptr<Product> block, last; // f32, of kConvertDepth and of the rest
};

/// The tiles that a thread has compiled, by description.
class TileCache {
public:
  std::shared_ptr<const Tile> get(const RotaGemm &tile) {
    std::string key(reinterpret_cast<const char *>(&tile), sizeof tile);
    auto it = tiles.find(key);
    if (it != tiles.end())
      return it->second;
    if (tiles.size() >= kMaxPrimitives)
      tiles.clear();
    return tiles[key] = std::make_shared<Tile>(tile);
  }
  static TileCache &get() {
    Worker::get(); // primitives are compiled for the threads that run them: one
    thread_local TileCache cache;
    return cache;
  }

private:
  std::unordered_map<std::string, std::shared_ptr<const Tile>> tiles;
};

/// An empty sum: C becomes zero unless it accumulates.
void clear(const RotaGemm &g, char *c) {
  if (g.accumulate)
    return;
  for (int64_t batch = 0; batch < g.batch; ++batch)
    for (int64_t row = 0; row < g.m; ++row)
      std::memset(c + (batch * g.strideC + row * g.ldc) * elementBytes(g.typeC),
                  0, g.n * elementBytes(g.typeC));
}

/// The tile at the top left, of `m` x `n` elements, as a product of its own.
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
  GemmTiles cut = tileGemm(g);
  int64_t lastM = g.m - (cut.countM - 1) * cut.tileM;
  int64_t lastN = g.n - (cut.countN - 1) * cut.tileN;
  // Compiled here, by one thread: [inner or last row][inner or last column].
  TileCache &cache = TileCache::get();
  std::shared_ptr<const Tile> tiles[2][2];
  for (int last = 0; last < 4; ++last)
    tiles[last / 2][last % 2] = cache.get(
        tileOf(g, last / 2 ? lastM : cut.tileM, last % 2 ? lastN : cut.tileN));
  int64_t perBatch = cut.countM * cut.countN;
  parallelPieces(context, g.batch * perBatch, [&](int64_t piece) {
    int64_t batch = piece / perBatch;
    int64_t i = piece % perBatch / cut.countN, j = piece % cut.countN;
    int64_t row = i * cut.tileM, column = j * cut.tileN;
    int64_t fromA = batch * g.strideA + row * (g.transposeA ? 1 : g.lda);
    int64_t fromB = batch * g.strideB + column * (g.transposeB ? g.ldb : 1);
    int64_t toC = batch * g.strideC + row * g.ldc + column;
    try {
      tiles[i + 1 == cut.countM][j + 1 == cut.countN]->run(
          a + fromA * elementBytes(g.typeA), b + fromB * elementBytes(g.typeB),
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

GemmTiles tileGemm(const RotaGemm &g) {
  if (int64_t rows = panelRows(g))
    return {rows, g.n, ceilDiv(g.m, rows), 1};
  GemmTiles cut;
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
  cut.countM = ceilDiv(g.m, cut.tileM);
  cut.countN = ceilDiv(g.n, cut.tileN);
  return cut;
}

} // namespace rota

using namespace rota;

void rotaHostGemm(RotaContext *context, const RotaGemm *gemm, const void *a,
                  const void *b, void *c) {
  const RotaGemm &g = *gemm;
  if (auto fault = findFault(g))
    return reportFailure(context, toString(g) + ": " + *fault);
  if (g.batch == 0 || g.m == 0 || g.n == 0)
    return;
  if (g.k == 0)
    return clear(g, static_cast<char *>(c));
  try {
    runTiles(context, g, static_cast<const char *>(a),
             static_cast<const char *>(b), static_cast<char *>(c));
  } catch (const std::exception &error) {
    reportFailure(context, toString(g) + ": " + error.what());
  }
}
