// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/ThreadScheduler.h"

#include <utility>

namespace rota::simt {

ThreadScheduler::ThreadScheduler(Fibers::Body body, void *owner)
    : fibers(body, owner) {}

bool ThreadScheduler::run(uint32_t count, std::optional<uint64_t> seed) {
  if (!fibers.prepare(count))
    return false;
  random = seed;
  ready.resize(count);
  for (uint32_t thread = 0; thread < count; ++thread)
    ready[thread] = thread;
  first = 0;
  waiting = count;
  current = takeNext();
  fibers.enter(current);
  return true;
}

uint32_t ThreadScheduler::takeNext() {
  if (random && waiting > 1) {
    // Knuth's linear congruential generator; its high bits are used.
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(ready[first], ready[placeOf((*random >> 33) % waiting)]);
  }
  uint32_t next = ready[first];
  first = placeOf(1);
  --waiting;
  if (waiting > 0)
    fibers.prefetch(ready[first]);
  return next;
}

void ThreadScheduler::suspend() {
  uint32_t self = current;
  if (waiting == 0)
    return fibers.leave(self);
  current = takeNext();
  if (current != self)
    fibers.switchTo(self, current);
}

void ThreadScheduler::wake(uint32_t thread) {
  ready[placeOf(waiting++)] = thread;
}

void ThreadScheduler::stop() {
  fibers.leave(current);
  __builtin_unreachable();
}

} // namespace rota::simt
