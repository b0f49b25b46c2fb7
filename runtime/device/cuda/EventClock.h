// SPDX-License-Identifier: Apache-2.0
//
// Times on a GPU.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_EVENTCLOCK_H
#define ROTA_RUNTIME_DEVICE_CUDA_EVENTCLOCK_H

#include "runtime/device/cuda/Gpu.h"

#include <deque>
#include <memory>
#include <vector>

namespace rota::cuda {

/// Points of time, as Device::mark says: events, which are used again once they
/// are forgotten.
class EventClock {
public:
  explicit EventClock(Gpu &gpu) : gpu(gpu) {}

  int64_t mark(StreamHandle stream);
  double secondsAt(int64_t point);
  void forget(int64_t point);

private:
  using EventPointer = std::unique_ptr<OwnedEvent>;

  Gpu &gpu;
  std::deque<EventPointer> marks; // from number `first` on
  std::vector<EventPointer> idle;
  int64_t first = 0;
  // Times are counted from an event that is not long ago, since the driver
  // gives distances in f32.
  EventPointer anchor;
  double anchorSeconds = 0.0;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_EVENTCLOCK_H
