// SPDX-License-Identifier: Apache-2.0
//
// The memory of the host: its size, and copies that no cache holds.
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Team.h"

#include <cstring>
#include <memory>
#include <unistd.h>
#include <vector>

namespace rota {

/// Bytes that each core copies: more than its part of the caches.
static constexpr size_t kCopiedBytes = size_t(64) << 20;

void measureMemory(mlir::rota::Machine &machine, int cores, double seconds) {
  machine.memoryBytes =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  double copy = secondsTogether(cores, seconds, [](int) {
    struct Work {
      std::vector<char> from = std::vector<char>(kCopiedBytes, 1);
      std::vector<char> to = std::vector<char>(kCopiedBytes, 2);
    };
    auto work = std::make_shared<Work>();
    return [work] {
      std::memcpy(work->to.data(), work->from.data(), kCopiedBytes);
    };
  });
  machine.copiedPerSecond = cores * double(kCopiedBytes) / copy;
  machine.memoryBytesPerSecond = 2 * machine.copiedPerSecond;
}

} // namespace rota
