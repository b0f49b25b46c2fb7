// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/EventPool.h"

namespace rota {

std::unique_ptr<cuda::OwnedEvent> EventPool::take() {
  std::lock_guard lock(mutex);
  if (free.empty())
    return std::make_unique<cuda::OwnedEvent>(gpu, timing);
  std::unique_ptr<cuda::OwnedEvent> event = std::move(free.back());
  free.pop_back();
  return event;
}

EventPool::Event EventPool::record(cuda::StreamHandle stream) {
  Event event(take().release(), [this](cuda::OwnedEvent *unused) {
    std::lock_guard lock(mutex);
    free.emplace_back(unused);
  });
  gpu.check(gpu.api().recordEvent(event->get(), stream), "recording an event");
  return event;
}

bool isComplete(const cuda::Gpu &gpu, const cuda::OwnedEvent &event) {
  cuda::Result result = gpu.api().queryEvent(event.get());
  if (result == cuda::kNotReady)
    return false;
  gpu.check(result, "asking for an event");
  return true;
}

} // namespace rota
