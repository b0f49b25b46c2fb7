// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/EmulatedMemory.h"
#include "runtime/device/simt/Simt.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace rota::simt {

using cuda::Result;

/// In device memory at first: NaN in every float type.
static constexpr int kFresh = 0xFF;

EmulatedMemory::EmulatedMemory(Emulator &emulator, int64_t deviceBytes)
    : emulator(emulator), deviceBytes(static_cast<size_t>(deviceBytes)) {}

EmulatedMemory::~EmulatedMemory() {
  for (const auto &[address, allocation] : allocations) {
    emulator.removeBuffer(address);
    munmap(allocation.mapped, allocation.mappedBytes);
  }
}

char *EmulatedMemory::map(size_t bytes, bool isHost) {
  size_t page = sysconf(_SC_PAGESIZE);
  size_t inner = (bytes + page - 1) / page * page;
  size_t whole = inner + 2 * page;
  void *mapped = mmap(nullptr, whole, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  char *begin = static_cast<char *>(mapped) + page;
  if (mprotect(begin, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, whole);
    return nullptr;
  }
  madvise(begin, inner, MADV_HUGEPAGE); // advice only
  allocations[begin] = {bytes, mapped, whole, isHost};
  emulator.addBuffer(isHost ? "host memory" : "device memory", begin, bytes);
  return begin;
}

Result EmulatedMemory::unmap(const void *address, bool isHost) {
  auto place = allocations.find(static_cast<const char *>(address));
  if (place == allocations.end() || place->second.isHost != isHost)
    return cuda::kInvalidValue;
  const Allocation &allocation = place->second;
  emulator.removeBuffer(address);
  munmap(allocation.mapped, allocation.mappedBytes);
  if (!isHost)
    used -= allocation.bytes;
  allocations.erase(place);
  return cuda::kSuccess;
}

Result EmulatedMemory::info(size_t *free, size_t *total) {
  std::lock_guard lock(mutex);
  *free = deviceBytes - used;
  *total = deviceBytes;
  return cuda::kSuccess;
}

Result EmulatedMemory::allocate(cuda::Address *address, size_t bytes) {
  if (bytes == 0)
    return cuda::kInvalidValue;
  std::lock_guard lock(mutex);
  char *begin = bytes <= deviceBytes - used ? map(bytes, false) : nullptr;
  if (!begin)
    return cuda::kOutOfMemory;
  if (emulator.order().watches())
    std::memset(begin, kFresh, bytes);
  used += bytes;
  *address = reinterpret_cast<cuda::Address>(begin);
  return cuda::kSuccess;
}

Result EmulatedMemory::allocateHost(void **address, size_t bytes, unsigned) {
  if (bytes == 0)
    return cuda::kInvalidValue;
  std::lock_guard lock(mutex);
  *address = map(bytes, true);
  return *address ? cuda::kSuccess : cuda::kOutOfMemory;
}

Result EmulatedMemory::free(cuda::Address address) {
  if (address == 0)
    return cuda::kSuccess;
  std::lock_guard lock(mutex);
  return unmap(reinterpret_cast<const void *>(address), false);
}

Result EmulatedMemory::freeHost(void *address) {
  std::lock_guard lock(mutex);
  return unmap(address, true);
}

/// The allocation that the byte lies in, or null.
const EmulatedMemory::Allocation *
EmulatedMemory::allocationOf(const void *address) const {
  auto *byte = static_cast<const char *>(address);
  auto next = allocations.upper_bound(byte);
  if (next == allocations.begin())
    return nullptr;
  const auto &[begin, allocation] = *std::prev(next);
  return static_cast<size_t>(byte - begin) < allocation.bytes ? &allocation
                                                              : nullptr;
}

bool EmulatedMemory::isHost(const void *address) {
  std::lock_guard lock(mutex);
  const Allocation *allocation = allocationOf(address);
  return allocation && allocation->isHost;
}

size_t EmulatedMemory::bytesAt(const void *address) {
  std::lock_guard lock(mutex);
  auto place = allocations.find(static_cast<const char *>(address));
  bool isDevice = place != allocations.end() && !place->second.isHost;
  return isDevice ? place->second.bytes : 0;
}

EmulatedMemory::Place EmulatedMemory::find(const void *begin, size_t bytes) {
  const char *byte = static_cast<const char *>(begin);
  std::lock_guard lock(mutex);
  auto next = allocations.upper_bound(byte);
  if (next != allocations.end() && next->first < byte + bytes)
    return Place::Invalid;
  if (next == allocations.begin())
    return Place::Unknown;
  const auto &[address, allocation] = *std::prev(next);
  size_t offset = byte - address;
  if (offset >= allocation.bytes)
    return Place::Unknown;
  return bytes <= allocation.bytes - offset ? Place::Known : Place::Invalid;
}

} // namespace rota::simt
