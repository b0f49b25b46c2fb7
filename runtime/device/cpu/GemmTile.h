// SPDX-License-Identifier: Apache-2.0
//
// The pieces that products on the CPU consist of: one single-threaded call of
// oneDNN each. Each thread that calls oneDNN limits OpenMP to one thread.
// Primitives are compiled once per shape and kept per calling thread; scratch
// memory belongs to the thread that runs the tile.
#ifndef ROTA_RUNTIME_DEVICE_CPU_GEMMTILE_H
#define ROTA_RUNTIME_DEVICE_CPU_GEMMTILE_H

#include "runtime/Abi.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace rota {

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Cuts `size` into equal parts of at most `limit`, multiples of `unit`.
inline int64_t evenPart(int64_t size, int64_t limit, int64_t unit) {
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

/// A compiled product of one shape, whatever its types.
class GemmTile;
using GemmTileRef = std::shared_ptr<const GemmTile>;

/// The tile of this description, whose batch is 1 and strides 0. Throws where
/// oneDNN does.
GemmTileRef findGemmTile(const RotaGemm &tile);

/// Runs the tile on the calling thread. Throws where oneDNN does.
void runGemmTile(const GemmTile &tile, const void *a, const void *b, void *c);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_GEMMTILE_H
