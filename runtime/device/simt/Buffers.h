// SPDX-License-Identifier: Apache-2.0
//
// The global memory that kernels may access.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_BUFFERS_H
#define ROTA_RUNTIME_DEVICE_SIMT_BUFFERS_H

#include "runtime/device/simt/GlobalShadow.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rota::simt {

struct GlobalBuffer {
  std::string name;
  const char *data;
  size_t bytes;
  std::unique_ptr<uint8_t[]> written; // by byte; null: all of them
  std::unique_ptr<GlobalShadow> shadow;

  uint64_t offsetOf(const void *address) const {
    return static_cast<const char *>(address) - data;
  }
  /// The first byte of those that was never written, if any.
  std::optional<uint64_t> findUnwritten(uint64_t offset, uint64_t count) const;
  void markWritten(uint64_t offset, uint64_t count) const;
};

/// Host threads may read and write at the same time, but not add or take away.
class Buffers {
public:
  void add(std::string name, const void *data, size_t bytes, bool written);
  void clear() { buffers.clear(); }
  void remove(const void *data);

  bool isEmpty() const { return buffers.empty(); }
  /// The buffer that all of these bytes lie in, or null.
  const GlobalBuffer *find(const void *address, uint64_t bytes) const;
  /// Bytes that are in no buffer: "6 bytes at byte 4092 of 'x', which has 4096
  /// bytes".
  std::string describe(const void *address, uint64_t bytes) const;

private:
  std::vector<GlobalBuffer> buffers; // by address
};

/// "bytes 0 to 15 of 'x', which copy of 64 bytes on stream 2 writes; neither
/// comes first".
std::string describe(const GlobalConflict &conflict, const GlobalBuffer &buffer,
                     const StreamOrder &order);

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_BUFFERS_H
