// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/PinnedBuffers.h"

#include <algorithm>

namespace rota {

/// Sizes are multiples of this, so that buffers of similar sizes are shared.
static constexpr int64_t kGranularity = 1 << 16;

/// The smallest free buffer that is large enough; null when there is none.
std::unique_ptr<PinnedBuffers::Buffer> PinnedBuffers::reuse(int64_t bytes) {
  auto best = free.end();
  for (auto it = free.begin(); it != free.end(); ++it)
    if ((*it)->memory.bytes() >= bytes &&
        (best == free.end() || (*it)->memory.bytes() < (*best)->memory.bytes()))
      best = it;
  if (best == free.end())
    return nullptr;
  std::unique_ptr<Buffer> buffer = std::move(*best);
  free.erase(best);
  gpu.check(gpu.api().synchronizeEvent(buffer->lastUse.get()),
            "waiting for a pinned buffer");
  return buffer;
}

std::shared_ptr<PinnedBuffers::Buffer> PinnedBuffers::take(int64_t bytes) {
  std::unique_ptr<Buffer> buffer = reuse(bytes);
  if (!buffer) {
    int64_t size = std::max<int64_t>(bytes, 1) + kGranularity - 1;
    size -= size % kGranularity;
    buffer.reset(new Buffer{{gpu, size}, {gpu, /*timing=*/false}});
    total += size;
  }
  return {buffer.release(),
          [this](Buffer *unused) { free.emplace_back(unused); }};
}

} // namespace rota
