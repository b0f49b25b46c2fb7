// SPDX-License-Identifier: Apache-2.0
//
// A rank's memory: one anonymous mapping of exactly the planned bytes, zero at
// first, with huge pages advised.
#ifndef ROTA_RUNTIME_DEVICE_CPU_ARENA_H
#define ROTA_RUNTIME_DEVICE_CPU_ARENA_H

#include <cstdint>

namespace rota {

class Arena {
public:
  /// Throws RunError when the system has not that much memory to give.
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&) = delete;

  int64_t bytes() const { return size; }
  char *data() const { return base; }
  /// Null for the offset -1 ("none").
  char *at(int64_t offset) const {
    return offset < 0 ? nullptr : base + offset;
  }

  /// The end of the last byte that is not zero, rounded up to the 64 bytes that
  /// blocks are aligned to: the highest byte that the run wrote.
  int64_t highWater() const;
  /// Bytes of the mapping that are in memory now (a multiple of the page size,
  /// of 2 MiB where the system gave huge pages).
  int64_t residentBytes() const;

private:
  char *base = nullptr;
  int64_t size = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_ARENA_H
