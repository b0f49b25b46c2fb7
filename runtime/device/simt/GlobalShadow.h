// SPDX-License-Identifier: Apache-2.0
//
// For every two bytes of a buffer in global memory: the operation, and within
// a launch the block, that last wrote them, and those that read them since. An
// access is reported when one of another operation has no order with it, or
// one of another block of the same launch: no barrier orders blocks.
//
// Most accesses take 16 bytes at once, so 16 bytes share one cell until an
// access of a part of them.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_GLOBALSHADOW_H
#define ROTA_RUNTIME_DEVICE_SIMT_GLOBALSHADOW_H

#include "runtime/device/simt/StreamOrder.h"

#include <cstddef>
#include <optional>

namespace rota::simt {

/// Two accesses of which neither comes first.
struct GlobalConflict {
  uint64_t begin, end;        // bytes of the buffer
  bool isWrite;               // of the other access
  OperationId other = 0;      // 0: a block of the same launch
  uint32_t otherBlock = 0;    // number in the grid
  bool severalBlocks = false; // that have read
};

/// Blocks of a launch may access at the same time. Each sees what others have
/// stored at some time before; two threads that come to a byte in the same
/// moment may both miss it.
class GlobalShadow {
public:
  explicit GlobalShadow(size_t bytes);
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow &) = delete;
  GlobalShadow &operator=(const GlobalShadow &) = delete;

  /// Records an access of a block and returns its first conflict.
  std::optional<GlobalConflict> access(bool isWrite, uint64_t offset,
                                       uint64_t bytes,
                                       const OrderedOperation &operation,
                                       uint32_t block);
  /// The last operation that wrote a byte. 0: none.
  OperationId lastWrite(uint64_t offset) const;

private:
  static constexpr uint64_t kChunk = 16, kPart = 2; // bytes
  static constexpr uint64_t kParts = kChunk / kPart;
  static constexpr uint32_t kSeveral = 0xFFFFFFFF;
  /// An operation in the upper half, a block in the lower. 0: none.
  struct Cell {
    uint64_t write, read;
  };
  struct Chunk {
    Cell whole;
    Cell *parts; // not null: they count instead
    uint64_t unused;
  };
  using Found = std::optional<GlobalConflict>;

  size_t mappedBytes() const {
    return (bytes + kChunk - 1) / kChunk * sizeof(Chunk);
  }
  Cell *split(Chunk &chunk);
  static Found read(Cell &cell, const OrderedOperation &operation,
                    uint32_t block);
  static Found write(Cell &cell, const OrderedOperation &operation,
                     uint32_t block);
  static Found conflictWithWrite(const Cell &cell,
                                 const OrderedOperation &operation,
                                 uint32_t block);
  static Found conflictWithReads(const Cell &cell,
                                 const OrderedOperation &operation,
                                 uint32_t block);

  const uint64_t bytes;
  Chunk *chunks = nullptr; // zero at first; null: the system gives no memory
  std::mutex mutex;
  std::vector<Cell *> pieces; // the parts of chunks; guarded by `mutex`
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_GLOBALSHADOW_H
