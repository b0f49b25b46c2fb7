// SPDX-License-Identifier: Apache-2.0
//
// The memory of the host: its size, and copies that no cache holds. Compiled
// with exceptions.
#include "runtime/device/AvailableMemory.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Team.h"
#include "tools/measure/WorkMemory.h"

#include <cstring>
#include <memory>

namespace rota {

/// Bytes that each core copies: more than its part of the caches.
static constexpr int64_t kCopiedBytes = int64_t(64) << 20;

void measureMemory(mlir::rota::Machine &machine, HostRounds &work,
                   double seconds) {
  machine.memoryBytes = double(availableMemory());
  double own = secondsTogether(work.cores, seconds, [](int) {
    struct Work {
      WorkMemory from{kCopiedBytes}, to{kCopiedBytes};
    };
    auto work = std::make_shared<Work>();
    return
        [work] { std::memcpy(work->to.at(0), work->from.at(0), kCopiedBytes); };
  });
  double copy = work.times.add("copy", own);
  machine.copiedPerSecond = work.cores * double(kCopiedBytes) / copy;
  machine.memoryBytesPerSecond = 2 * machine.copiedPerSecond;
}

} // namespace rota
