// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/Buffers.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::simt {

/// Accesses so near to a buffer are described by its name.
static constexpr int64_t kNear = 1 << 20;

void Buffers::add(std::string name, const void *data, size_t bytes,
                  bool written) {
  Buffer buffer{std::move(name), static_cast<const char *>(data), bytes,
                written ? nullptr : std::make_unique<uint8_t[]>(bytes)};
  auto place = std::upper_bound(
      buffers.begin(), buffers.end(), buffer.data,
      [](const char *data, const Buffer &other) { return data < other.data; });
  buffers.insert(place, std::move(buffer));
}

void Buffers::remove(const void *data) {
  std::erase_if(buffers,
                [&](const Buffer &buffer) { return buffer.data == data; });
}

const Buffers::Buffer *Buffers::find(const void *address,
                                     uint64_t bytes) const {
  const char *byte = static_cast<const char *>(address);
  auto next = std::upper_bound(buffers.begin(), buffers.end(), byte,
                               [](const char *byte, const Buffer &buffer) {
                                 return byte < buffer.data;
                               });
  if (next == buffers.begin())
    return nullptr;
  const Buffer &buffer = next[-1];
  size_t offset = byte - buffer.data;
  bool inside = offset <= buffer.bytes && bytes <= buffer.bytes - offset;
  return inside ? &buffer : nullptr;
}

std::string Buffers::describe(const void *address, uint64_t bytes) const {
  const char *byte = static_cast<const char *>(address);
  const Buffer *nearest = nullptr;
  int64_t least = kNear;
  for (const Buffer &buffer : buffers) {
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

std::string Buffers::read(const void *address, uint64_t bytes) const {
  if (buffers.empty())
    return "";
  const Buffer *buffer = find(address, bytes);
  if (!buffer)
    return describe(address, bytes);
  if (!buffer->written)
    return "";
  size_t offset = static_cast<const char *>(address) - buffer->data;
  for (size_t i = offset; i < offset + bytes; ++i)
    if (!__atomic_load_n(&buffer->written[i], __ATOMIC_RELAXED))
      return fmt::format("byte {} of '{}', which was never written", i,
                         buffer->name);
  return "";
}

std::string Buffers::write(const void *address, uint64_t bytes) const {
  if (buffers.empty())
    return "";
  const Buffer *buffer = find(address, bytes);
  if (!buffer)
    return describe(address, bytes);
  if (buffer->written) {
    size_t offset = static_cast<const char *>(address) - buffer->data;
    for (size_t i = offset; i < offset + bytes; ++i)
      __atomic_store_n(&buffer->written[i], uint8_t(1), __ATOMIC_RELAXED);
  }
  return "";
}

} // namespace rota::simt
