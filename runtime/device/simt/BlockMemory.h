// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of one block, and the checks of every access.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_BLOCKMEMORY_H
#define ROTA_RUNTIME_DEVICE_SIMT_BLOCKMEMORY_H

#include "runtime/device/simt/Buffers.h"
#include "runtime/device/simt/Reports.h"
#include "runtime/device/simt/SharedShadow.h"
#include "runtime/device/simt/Simt.h"

#include <optional>

namespace rota::simt {

struct MemoryAccess {
  const void *address;
  uint64_t bytes, alignment; // the alignment: a power of two
  uint32_t thread, site;
};

class BlockMemory {
public:
  BlockMemory(const Buffers &buffers, Reports &reports);
  ~BlockMemory();

  /// Fills the shared memory with NaNs and forgets accesses. False when the
  /// system has no memory.
  [[nodiscard]] bool startBlock(uint64_t sharedBytes, bool checked,
                                const std::vector<uint32_t> &liveLanes);
  /// The launch that the next blocks belong to.
  void startLaunch(const OrderedOperation &launch,
                   const StreamOrder &streamOrder) {
    operation = launch;
    order = &streamOrder;
    moved = {};
  }
  /// The number of the block in the grid.
  void setBlock(uint32_t number) { block = number; }

  char *shared() const { return base; }
  SharedShadow &shadow() { return accesses; }
  /// What blocks accessed since the start of the launch, where they are
  /// checked.
  const MovedBytes &getMovedBytes() const { return moved; }
  /// Whether accesses are checked at all.
  bool isChecked() const { return checked; }

  /// Check and record one access; false when the kernel cannot go on.
  [[nodiscard]] bool read(const MemoryAccess &access);
  /// `value`: the bytes that are stored, or null when they are not known.
  [[nodiscard]] bool write(const MemoryAccess &access, const void *value);
  /// The two ends of an asynchronous copy into shared memory.
  [[nodiscard]] bool startCopy(const MemoryAccess &access);
  void endCopy(const MemoryAccess &access);
  /// A read of a product of a warpgroup, which has been checked, goes on from
  /// here to there.
  void startProductRead(const void *address, uint64_t bytes);
  void endProductRead(const MemoryAccess &access);

private:
  enum class Place { Invalid, Shared, Global };
  Place locate(const MemoryAccess &access);
  void report(const MemoryAccess &access, const Conflict &conflict);
  [[nodiscard]] bool accessGlobal(const MemoryAccess &access, bool isWrite);
  uint64_t offsetOf(const void *address) const {
    return static_cast<const char *>(address) - base;
  }

  const Buffers &buffers;
  Reports &reports;
  SharedShadow accesses;
  char *mapped = nullptr;
  char *base = nullptr;
  uint64_t sharedBytes = 0;
  bool checked = false;
  OrderedOperation operation;
  const StreamOrder *order = nullptr;
  uint32_t block = 0;
  MovedBytes moved;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_BLOCKMEMORY_H
