// SPDX-License-Identifier: Apache-2.0
//
// For every two bytes of a block's shared memory: when and where they were last
// written and read, and by which thread. An access is reported when an earlier
// one of another thread is not ordered before it, whatever order the emulator
// chose.
//
// Time is the number of synchronizations so far. An access of thread a is
// ordered before a later one of thread b if a = b, or if a barrier of the block
// came between, or, in one warp, a barrier of the warp. A read is also ordered
// before a write of its warp by a collective of the whole warp between them:
// its value has arrived by then.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_SHAREDSHADOW_H
#define ROTA_RUNTIME_DEVICE_SIMT_SHAREDSHADOW_H

#include <cstdint>
#include <vector>

namespace rota::simt {

inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kMaxWarps = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFF;

struct Conflict {
  enum class Kind {
    None,
    Unwritten,      // read of bytes that no thread of the block wrote
    Pending,        // access to the target of a copy before its wait
    InProduct,      // write of what a product reads before its wait
    ReadAfterWrite, // races: this access, then the other's
    WriteAfterWrite,
    WriteAfterRead
  };
  Kind kind = Kind::None;
  uint64_t byte = 0;             // the first byte of the cell, from the start
  uint32_t thread = 0, site = 0; // thread and site of the other access
};

class SharedShadow {
public:
  enum class WriteKind {
    Plain,
    SameValue, // stores what is there: no race with a write at the same site
    CopyStart, // an asynchronous copy begins, and may land from now on
    CopyEnd    // it has landed
  };

  /// Forgets all accesses. `live[w]` has a bit for each lane of warp w.
  void startBlock(uint64_t bytes, const std::vector<uint32_t> &live);

  /// Records an access and returns the first conflict with earlier ones.
  Conflict read(uint64_t offset, uint64_t bytes, uint32_t thread,
                uint32_t site);
  Conflict write(uint64_t offset, uint64_t bytes, uint32_t thread,
                 uint32_t site, WriteKind kind);

  /// Bytes that a product of a warpgroup reads, from after `read` to its wait.
  /// Its end counts as a read, too.
  void startProductRead(uint64_t offset, uint64_t bytes);
  void endProductRead(uint64_t offset, uint64_t bytes, uint32_t thread,
                      uint32_t site);

  void blockBarrier() { lastBlockBarrier = ++now; }
  void warpBarrier(uint32_t warp, uint32_t mask);
  /// A collective that synchronizes the lanes without ordering their memory.
  void warpCollective(uint32_t warp, uint32_t mask);

private:
  struct Cell {
    uint32_t writeTime = 0, readTime = 0; // 0: never
    uint32_t writeSite = 0, readSite = 0;
    uint32_t readerWarps = 0; // since the last barrier of the block
    uint16_t writer = 0, reader = 0;
    bool severalReaders = false, pending = false;
    uint16_t productReads = 0; // by threads that have not waited for them
  };
  struct Warp {
    uint32_t live = 0;
    uint32_t barrier = 0, collective = 0; // times of the last of all lanes
    /// The last barrier of two lanes, [lane, lane]; empty until there is one of
    /// a part of the warp.
    std::vector<uint32_t> pairBarrier;
  };

  bool isOrdered(uint32_t time, uint32_t earlier, uint32_t later) const;
  bool isWriteAfterReadOrdered(const Cell &cell, uint32_t thread) const;
  Conflict::Kind conflictOfRead(const Cell &cell, uint32_t thread) const;
  Conflict conflictOfWrite(const Cell &cell, uint32_t thread, uint32_t site,
                           WriteKind kind) const;
  bool wasWritten(const Cell &cell) const { return cell.writeTime >= start; }

  uint32_t now = 0;
  uint32_t start = 1; // the block's first time
  uint32_t lastBlockBarrier = 0;
  uint64_t openReads = 0; // sum of all `productReads`
  std::vector<Cell> cells;
  std::vector<Warp> warps;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_SHAREDSHADOW_H
