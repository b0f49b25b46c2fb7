// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/PinnedMemory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rota::cuda {

PinnedBuffer::PinnedBuffer(Gpu &gpu, int64_t bytes) : gpu(gpu), size(bytes) {
  if (bytes <= 0)
    return;
  gpu.use();
  void *memory = nullptr;
  gpu.check(gpu.api().allocateHost(&memory, static_cast<size_t>(bytes),
                                   kPortableHostMemory),
            "allocating host memory");
  address = static_cast<char *>(memory);
  std::memset(address, 0, static_cast<size_t>(bytes));
}

PinnedBuffer::~PinnedBuffer() {
  gpu.enter();
  if (address)
    gpu.api().freeHost(address);
}

/// Waits for the oldest room.
void PinnedRing::reclaim() {
  gpu.check(gpu.api().synchronizeEvent(rooms.front().done->get()),
            "waiting for a copy");
  events.push_back(std::move(rooms.front().done));
  rooms.pop_front();
}

char *PinnedRing::take(int64_t bytes) {
  if (head + bytes > buffer.bytes()) {
    // Rooms after the last one are the oldest: those at the begin are younger.
    while (!rooms.empty() && rooms.front().begin >= head)
      reclaim();
    head = 0;
  }
  begin = head;
  head = begin + bytes;
  // The oldest rooms lie ahead.
  while (!rooms.empty() && rooms.front().begin < head &&
         begin < rooms.front().end)
    reclaim();
  return buffer.data() + begin;
}

void PinnedRing::release(StreamHandle stream) {
  if (events.empty())
    events.push_back(std::make_unique<OwnedEvent>(gpu, /*timing=*/false));
  gpu.check(gpu.api().recordEvent(events.back()->get(), stream),
            "recording an event");
  rooms.push_back({begin, head, std::move(events.back())});
  events.pop_back();
}

class PinnedReads::Read : public HostRead {
public:
  Read(PinnedReads &owner, std::unique_ptr<Slot> slot, int64_t bytes)
      : owner(owner), slot(std::move(slot)), bytes(bytes) {}
  ~Read() override { owner.idle.push_back(std::move(slot)); }
  std::span<const char> wait() override {
    owner.gpu.use();
    owner.gpu.check(owner.gpu.api().synchronizeEvent(slot->done.get()),
                    "waiting for results");
    return {slot->buffer.data(), static_cast<size_t>(bytes)};
  }

private:
  PinnedReads &owner;
  std::unique_ptr<Slot> slot;
  int64_t bytes;
};

std::unique_ptr<HostRead> PinnedReads::start(const void *source, int64_t bytes,
                                             StreamHandle stream) {
  auto found = std::find_if(idle.begin(), idle.end(), [&](const auto &slot) {
    return slot->buffer.bytes() >= bytes;
  });
  std::unique_ptr<Slot> slot;
  if (found != idle.end()) {
    slot = std::move(*found);
    idle.erase(found);
  } else {
    slot = std::make_unique<Slot>(gpu, bytes);
  }
  gpu.use();
  if (bytes > 0)
    gpu.check(gpu.api().copy(reinterpret_cast<Address>(slot->buffer.data()),
                             reinterpret_cast<Address>(source),
                             static_cast<size_t>(bytes), stream),
              "reading results");
  gpu.check(gpu.api().recordEvent(slot->done.get(), stream),
            "recording an event");
  return std::make_unique<Read>(*this, std::move(slot), bytes);
}

} // namespace rota::cuda
