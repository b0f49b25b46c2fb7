// SPDX-License-Identifier: Apache-2.0
//
// Host memory that a GPU reads and writes while the host goes on.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_PINNEDMEMORY_H
#define ROTA_RUNTIME_DEVICE_CUDA_PINNEDMEMORY_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Gpu.h"

#include <deque>
#include <vector>

namespace rota::cuda {

/// One allocation, zero at first. Throws RunError when there is not that much.
class PinnedBuffer {
public:
  PinnedBuffer(Gpu &gpu, int64_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer &) = delete;
  PinnedBuffer &operator=(const PinnedBuffer &) = delete;
  char *data() const { return address; }
  int64_t bytes() const { return size; }

private:
  Gpu &gpu;
  char *address = nullptr;
  int64_t size;
};

/// Memory for bytes in flight to one stream: rooms are taken in turn, and
/// again when what used them is done.
class PinnedRing {
public:
  PinnedRing(Gpu &gpu, int64_t bytes) : gpu(gpu), buffer(gpu, bytes) {}

  int64_t bytes() const { return buffer.bytes(); }
  /// Room for that many bytes, at most bytes().
  char *take(int64_t bytes);
  /// Frees the room that was taken last once `stream` has done its present
  /// work.
  void release(StreamHandle stream);

private:
  struct Room {
    int64_t begin, end;
    std::unique_ptr<OwnedEvent> done;
  };

  void reclaim();

  Gpu &gpu;
  PinnedBuffer buffer;
  std::deque<Room> rooms; // in use, in the order of taking
  std::vector<std::unique_ptr<OwnedEvent>> events;
  int64_t begin = 0, head = 0; // the room that was taken last
};

/// Buffers for bytes in flight to the host, used again and again.
class PinnedReads {
public:
  explicit PinnedReads(Gpu &gpu) : gpu(gpu) {}
  /// Starts a read on `stream`. The result must not outlive this object.
  std::unique_ptr<HostRead> start(const void *source, int64_t bytes,
                                  StreamHandle stream);

private:
  struct Slot {
    Slot(Gpu &gpu, int64_t bytes) : buffer(gpu, bytes), done(gpu, false) {}
    PinnedBuffer buffer;
    OwnedEvent done;
  };
  class Read;

  Gpu &gpu;
  std::vector<std::unique_ptr<Slot>> idle;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_PINNEDMEMORY_H
