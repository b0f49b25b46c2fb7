// SPDX-License-Identifier: Apache-2.0
//
// Pinned host buffers that are used again.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_PINNEDBUFFERS_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_PINNEDBUFFERS_H

#include "runtime/device/cuda/PinnedMemory.h"

#include <memory>
#include <vector>

namespace rota {

/// Pinned buffers of one thread. The pool must outlive its buffers.
class PinnedBuffers {
public:
  explicit PinnedBuffers(cuda::Gpu &gpu) : gpu(gpu) {}

  struct Buffer {
    cuda::PinnedBuffer memory;
    // Recorded by the owner after the last work that uses the memory, where
    // that may still run when the owner gives the buffer back.
    cuda::OwnedEvent lastUse;
    char *data() const { return memory.data(); }
  };
  /// A buffer of at least that many bytes, whose last use has ended. It goes
  /// back to the pool with its last owner. Throws RunError.
  std::shared_ptr<Buffer> take(int64_t bytes);

  /// Bytes of all buffers, in use or not.
  int64_t bytes() const { return total; }

private:
  std::unique_ptr<Buffer> reuse(int64_t bytes);

  cuda::Gpu &gpu;
  std::vector<std::unique_ptr<Buffer>> free;
  int64_t total = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_PINNEDBUFFERS_H
