// SPDX-License-Identifier: Apache-2.0
//
// Memory of a thread for copies, and how sizes are cut into parts.
#ifndef ROTA_RUNTIME_DEVICE_CPU_SCRATCH_H
#define ROTA_RUNTIME_DEVICE_CPU_SCRATCH_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_SCRATCH_H
