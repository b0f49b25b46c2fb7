// SPDX-License-Identifier: Apache-2.0
//
// Counters of small keys in shared memory, with which a block sorts by
// counting. Each warp has counters of its own and walks over its own part of
// the keys, so that no warp waits for another on the way.
#ifndef ROTA_LOWERING_GPU_KEYCOUNTERS_H
#define ROTA_LOWERING_GPU_KEYCOUNTERS_H

#include "lowering/gpu/GpuBuilder.h"

namespace rota::lowering {

class KeyCounters {
public:
  /// Counters of keys below `range`, a power of two, for the first `warps`
  /// warps of the block. Nothing is stored there yet. Keys and counts are i32.
  KeyCounters(GpuBuilder &k, int64_t range, int64_t warps)
      : k(k), range(range), warps(warps),
        counters(k.allocateShared(warps * range, k.ops().getI32Type())) {}

  mlir::Value lane() { return k.rem(k.thread(), kWarp); }
  mlir::Value warp() { return k.div(k.thread(), kWarp); }

  /// Stores zeros. All `threads` threads of the block call it.
  void clear(int64_t threads);

  /// Adds the key of each lane to the counters of its warp, by ascending lane;
  /// a key outside of the range is none. Calls visit(before) in a thread with
  /// a key: the counter before this key. All threads of the warp call it; a
  /// warp without counters has no keys.
  using Visit = llvm::function_ref<void(mlir::Value before)>;
  void add(mlir::Value key, Visit visit);

  /// The counters of a key, added up over the warps.
  mlir::Value sum(mlir::Value key);
  /// Replaces the counts of a key by starts: `start` for the first warp, plus
  /// the counts of the warps before for each other one.
  void startAt(mlir::Value key, mlir::Value start);

private:
  mlir::Value counterOf(int64_t ofWarp, mlir::Value key) {
    return k.add(key, ofWarp * range);
  }
  /// The lanes among `found` with the same key, for such a lane.
  mlir::Value lanesOf(mlir::Value key, mlir::Value found);
  mlir::Value ballot(mlir::Value condition);
  mlir::Value countBits(mlir::Value bits);
  void waitForWarp();

  GpuBuilder &k;
  int64_t range, warps;
  Memory counters; // [warps, range]
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_KEYCOUNTERS_H
