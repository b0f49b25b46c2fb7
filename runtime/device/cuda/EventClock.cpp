// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/EventClock.h"

#include <algorithm>
#include <utility>

namespace rota::cuda {

int64_t EventClock::mark(StreamHandle stream) {
  gpu.use();
  if (idle.empty())
    idle.push_back(std::make_unique<OwnedEvent>(gpu, /*timing=*/true));
  EventPointer event = std::move(idle.back());
  idle.pop_back();
  gpu.check(gpu.api().recordEvent(event->get(), stream), "noting a time");
  if (!anchor) {
    anchor = std::move(event);
    return mark(stream);
  }
  marks.push_back(std::move(event));
  return first + static_cast<int64_t>(marks.size()) - 1;
}

double EventClock::secondsAt(int64_t point) {
  gpu.use();
  EventHandle event = marks[static_cast<size_t>(point - first)]->get();
  gpu.check(gpu.api().synchronizeEvent(event), "waiting for a time");
  float milliseconds = 0.0f;
  gpu.check(gpu.api().elapsedTime(&milliseconds, anchor->get(), event),
            "reading a time");
  return anchorSeconds + 1e-3 * milliseconds;
}

void EventClock::forget(int64_t point) {
  if (point < first)
    return;
  double seconds = secondsAt(point);
  for (; first < point; ++first) {
    idle.push_back(std::move(marks.front()));
    marks.pop_front();
  }
  idle.push_back(std::exchange(anchor, std::move(marks.front())));
  marks.pop_front();
  ++first;
  anchorSeconds = seconds;
}

} // namespace rota::cuda
