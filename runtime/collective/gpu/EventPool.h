// SPDX-License-Identifier: Apache-2.0
//
// Events of a GPU that are used again. An event may be recorded anew as soon as
// its last record is not needed: streams that wait for the record keep it.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_EVENTPOOL_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_EVENTPOOL_H

#include "runtime/device/cuda/Gpu.h"

#include <memory>
#include <mutex>
#include <vector>

namespace rota {

/// Any thread may call. The pool must outlive its events.
class EventPool {
public:
  EventPool(cuda::Gpu &gpu, bool timing) : gpu(gpu), timing(timing) {}

  using Event = std::shared_ptr<cuda::OwnedEvent>;
  /// An event that was just recorded on the stream. It goes back to the pool
  /// with its last owner. Throws RunError.
  Event record(cuda::StreamHandle stream);

private:
  std::unique_ptr<cuda::OwnedEvent> take();

  cuda::Gpu &gpu;
  const bool timing;
  std::mutex mutex;
  std::vector<std::unique_ptr<cuda::OwnedEvent>> free; // guarded
};

/// True when the work before the event's last record is done. Throws RunError
/// when the GPU has failed.
bool isComplete(const cuda::Gpu &gpu, const cuda::OwnedEvent &event);

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_EVENTPOOL_H
