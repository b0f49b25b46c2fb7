// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/GemmTile.h"

#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/GemmConvert.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

namespace rota {
namespace {

/// Operands that must be widened are taken this many of k at a time.
constexpr int64_t kConvertDepth = 512;
/// Compiled primitives a thread keeps; a model needs a few dozen, one with
/// experts some hundred.
constexpr size_t kMaxPrimitives = 512;

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

} // namespace

/// The product of one tile shape, whatever its types.
class GemmTile {
public:
  explicit GemmTile(const RotaGemm &g) : g(g), direct(Product::make(g)) {
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
    Worker::get(); // primitives are compiled for the threads that run them: one
    thread_local TileCache cache;
    return cache;
  }

private:
  std::unordered_map<std::string, GemmTileRef> tiles;
};
} // namespace

GemmTileRef findGemmTile(const RotaGemm &tile) {
  return TileCache::get().get(tile);
}

void runGemmTile(const GemmTile &tile, const void *a, const void *b, void *c) {
  tile.run(a, b, c);
}

} // namespace rota
