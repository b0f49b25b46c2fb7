// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/TlbMisses.h"

#include <cerrno>
#include <cstring>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rota::bench {

TlbMisses::TlbMisses() {
  perf_event_attr event = {};
  event.size = sizeof event;
  event.type = PERF_TYPE_HW_CACHE;
  event.config = PERF_COUNT_HW_CACHE_DTLB | (PERF_COUNT_HW_CACHE_OP_READ << 8) |
                 (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
  event.inherit = 1;
  event.exclude_kernel = 1;
  counter = int(syscall(SYS_perf_event_open, &event, /*pid=*/0, /*cpu=*/-1,
                        /*group=*/-1, /*flags=*/0));
  if (counter < 0)
    reason = std::string("perf_event_open: ") + std::strerror(errno);
}

TlbMisses::~TlbMisses() {
  if (counter >= 0)
    close(counter);
}

int64_t TlbMisses::read() const {
  int64_t count = 0;
  if (counter < 0 || ::read(counter, &count, sizeof count) != sizeof count)
    return 0;
  return count;
}

} // namespace rota::bench
