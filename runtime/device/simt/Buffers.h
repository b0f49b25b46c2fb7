// SPDX-License-Identifier: Apache-2.0
//
// The global memory that kernels may access.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_BUFFERS_H
#define ROTA_RUNTIME_DEVICE_SIMT_BUFFERS_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rota::simt {

/// Host threads may read and write at the same time, but not add or take away.
class Buffers {
public:
  void add(std::string name, const void *data, size_t bytes, bool written);
  void clear() { buffers.clear(); }
  void remove(const void *data);

  bool contains(const void *address, uint64_t bytes) const {
    return find(address, bytes);
  }
  /// Empty if all bytes lie in one buffer and, for a read, were written;
  /// otherwise what is wrong: "6 bytes at byte 4092 of 'x', which has 4096".
  /// A write marks its bytes as written. Without buffers nothing is wrong.
  std::string read(const void *address, uint64_t bytes) const;
  std::string write(const void *address, uint64_t bytes) const;

private:
  struct Buffer {
    std::string name;
    const char *data;
    size_t bytes;
    std::unique_ptr<uint8_t[]> written; // by byte; null: all of them
  };
  const Buffer *find(const void *address, uint64_t bytes) const;
  std::string describe(const void *address, uint64_t bytes) const;

  std::vector<Buffer> buffers; // by address
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_BUFFERS_H
