// SPDX-License-Identifier: Apache-2.0
//
// The threads of one block as fibers of one host thread. A thread runs until it
// waits; the next is the one that was woken first, or a random one.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_THREADSCHEDULER_H
#define ROTA_RUNTIME_DEVICE_SIMT_THREADSCHEDULER_H

#include "runtime/device/simt/Fibers.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace rota::simt {

class ThreadScheduler {
public:
  /// `body(owner)` is what each thread runs.
  ThreadScheduler(Fibers::Body body, void *owner);

  /// Runs threads 0 .. count-1 from their start, in random orders if there is a
  /// seed. Returns when no thread can go on, or after stop(). False when the
  /// system has no memory for their stacks.
  [[nodiscard]] bool run(uint32_t count, std::optional<uint64_t> seed);

  /// For threads: the one that runs.
  uint32_t running() const { return current; }
  /// The thread waits until wake(), or for ever when it has ended.
  void suspend();
  void wake(uint32_t thread);
  /// Ends the run for all threads.
  [[noreturn]] void stop();

  bool isOnStackOfRunning(const void *address) const {
    return fibers.isOnStack(current, address);
  }

private:
  uint32_t takeNext();
  /// The place in the ring `distance` places after the first, less than a
  /// round.
  size_t placeOf(size_t distance) const {
    size_t place = first + distance;
    return place < ready.size() ? place : place - ready.size();
  }

  Fibers fibers;
  std::vector<uint32_t> ready; // a ring
  size_t first = 0, waiting = 0;
  uint32_t current = 0;
  std::optional<uint64_t> random; // state of the generator
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_THREADSCHEDULER_H
