// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/Buffers.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::simt {

/// Accesses so near to a buffer are described by its name.
static constexpr int64_t kNear = 1 << 20;

void Buffers::add(std::string name, const void *data, size_t bytes,
                  bool written) {
  GlobalBuffer buffer{std::move(name), static_cast<const char *>(data), bytes,
                      written ? nullptr : std::make_unique<uint8_t[]>(bytes),
                      std::make_unique<GlobalShadow>(bytes)};
  auto place =
      std::upper_bound(buffers.begin(), buffers.end(), buffer.data,
                       [](const char *data, const GlobalBuffer &other) {
                         return data < other.data;
                       });
  buffers.insert(place, std::move(buffer));
}

void Buffers::remove(const void *data) {
  std::erase_if(
      buffers, [&](const GlobalBuffer &buffer) { return buffer.data == data; });
}

const GlobalBuffer *Buffers::find(const void *address, uint64_t bytes) const {
  const char *byte = static_cast<const char *>(address);
  auto next =
      std::upper_bound(buffers.begin(), buffers.end(), byte,
                       [](const char *byte, const GlobalBuffer &buffer) {
                         return byte < buffer.data;
                       });
  if (next == buffers.begin())
    return nullptr;
  const GlobalBuffer &buffer = next[-1];
  size_t offset = byte - buffer.data;
  bool inside = offset <= buffer.bytes && bytes <= buffer.bytes - offset;
  return inside ? &buffer : nullptr;
}

std::string Buffers::describe(const void *address, uint64_t bytes) const {
  const char *byte = static_cast<const char *>(address);
  const GlobalBuffer *nearest = nullptr;
  int64_t least = kNear;
  for (const GlobalBuffer &buffer : buffers) {
    int64_t distance =
        std::max(buffer.data - byte, byte - (buffer.data + buffer.bytes));
    if (distance < least) {
      least = distance;
      nearest = &buffer;
    }
  }
  if (!nearest)
    return fmt::format("{} bytes at {}, which is in no buffer", bytes, address);
  return fmt::format("{} bytes at byte {} of '{}', which has {} bytes", bytes,
                     byte - nearest->data, nearest->name, nearest->bytes);
}

std::optional<uint64_t> GlobalBuffer::findUnwritten(uint64_t offset,
                                                    uint64_t count) const {
  if (written)
    for (uint64_t i = offset; i < offset + count; ++i)
      if (!__atomic_load_n(&written[i], __ATOMIC_RELAXED))
        return i;
  return std::nullopt;
}

void GlobalBuffer::markWritten(uint64_t offset, uint64_t count) const {
  if (written)
    for (uint64_t i = offset; i < offset + count; ++i)
      __atomic_store_n(&written[i], uint8_t(1), __ATOMIC_RELAXED);
}

std::string describe(const GlobalConflict &conflict, const GlobalBuffer &buffer,
                     const StreamOrder &order) {
  std::string bytes = fmt::format("bytes {} to {} of '{}'", conflict.begin,
                                  conflict.end - 1, buffer.name);
  const char *verb = conflict.isWrite ? "writes" : "reads";
  if (conflict.other != 0)
    return fmt::format("{}, which {} {}; neither comes first", bytes,
                       order.describe(conflict.other), verb);
  if (conflict.severalBlocks)
    return bytes + ", which other blocks of the launch read";
  return fmt::format("{}, which block {} of the launch {}", bytes,
                     conflict.otherBlock, verb);
}

} // namespace rota::simt
