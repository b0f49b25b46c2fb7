// SPDX-License-Identifier: Apache-2.0
//
// Host memory that a GPU reads and writes by itself.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_PINNEDMEMORY_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_PINNEDMEMORY_H

#include "runtime/device/cuda/Gpu.h"

namespace rota {

/// The GPU must outlive it, and must not use it any more when it ends.
class PinnedMemory {
public:
  /// Throws RunError when the system has not that much memory to give.
  PinnedMemory(cuda::Gpu &gpu, int64_t bytes) : gpu(gpu), size(bytes) {
    gpu.check(gpu.api().allocateHost(&place, static_cast<size_t>(bytes),
                                     cuda::kPortableHostMemory),
              "allocating pinned host memory");
  }
  ~PinnedMemory() { gpu.api().freeHost(place); }
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;

  char *data() const { return static_cast<char *>(place); }
  int64_t bytes() const { return size; }

private:
  cuda::Gpu &gpu;
  void *place = nullptr;
  int64_t size;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_PINNEDMEMORY_H
