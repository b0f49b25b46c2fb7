// SPDX-License-Identifier: Apache-2.0
//
// Memory of measured work.
#ifndef ROTA_TOOLS_MEASURE_WORKMEMORY_H
#define ROTA_TOOLS_MEASURE_WORKMEMORY_H

#include "runtime/device/cpu/HostArena.h"

#include <algorithm>
#include <optional>

namespace rota {

/// The multiple of a cache line that holds so many bytes.
constexpr int64_t wholeLines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Memory as a trainer has it, with huge pages where the host gives them. Its
/// elements are about 1, in f32 as in bf16.
class WorkMemory : public HostArena {
public:
  explicit WorkMemory(int64_t bytes) : HostArena(wholeLines(bytes)) {
    fill(this->bytes());
  }

  /// Sets the first bytes, a multiple of 4, to elements of about 1 again.
  void fill(int64_t bytes) {
    auto *words = static_cast<uint32_t *>(at(0));
    std::fill_n(words, bytes / 4, 0x3f803f80u);
  }
};

/// Makes the memory at least so large, on the thread that uses it. Returns
/// whether it is new.
inline bool provide(std::optional<WorkMemory> &memory, int64_t bytes) {
  bool isSmall = !memory || memory->bytes() < bytes;
  if (isSmall)
    memory.emplace(bytes);
  return isSmall;
}

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_WORKMEMORY_H
