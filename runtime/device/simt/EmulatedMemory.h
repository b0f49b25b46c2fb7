// SPDX-License-Identifier: Apache-2.0
//
// The memory of an emulated GPU, and pinned host memory: pages of this
// process, which kernels may access by the addresses that the host knows.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_EMULATEDMEMORY_H
#define ROTA_RUNTIME_DEVICE_SIMT_EMULATEDMEMORY_H

#include "runtime/device/cuda/DriverApi.h"

#include <map>
#include <mutex>

namespace rota::simt {

class Emulator;

/// Any thread may call. Functions that return a Result are those of the driver
/// API.
class EmulatedMemory {
public:
  /// The emulator learns of all allocations.
  EmulatedMemory(Emulator &emulator, int64_t deviceBytes);
  ~EmulatedMemory();

  cuda::Result info(size_t *free, size_t *total);
  cuda::Result allocate(cuda::Address *address, size_t bytes);
  cuda::Result allocateHost(void **address, size_t bytes, unsigned flags);
  /// Once no work uses the memory.
  cuda::Result free(cuda::Address address);
  cuda::Result freeHost(void *address);

  enum class Place {
    Known,   // in one allocation
    Unknown, // pageable host memory, or nothing at all
    Invalid  // over the end of an allocation
  };
  Place find(const void *begin, size_t bytes);
  bool isHost(const void *address);
  /// The size of the device allocation that begins there, or 0.
  size_t bytesAt(const void *address);

private:
  struct Allocation {
    size_t bytes;
    void *mapped; // with a page before and after that must not be accessed
    size_t mappedBytes;
    bool isHost;
  };

  /// Null when the system has no memory to give.
  char *map(size_t bytes, bool isHost);
  cuda::Result unmap(const void *address, bool isHost);
  const Allocation *allocationOf(const void *address) const;

  Emulator &emulator;
  const size_t deviceBytes;
  std::mutex mutex;
  size_t used = 0; // bytes in use, at most deviceBytes
  std::map<const char *, Allocation> allocations; // by address
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_EMULATEDMEMORY_H
