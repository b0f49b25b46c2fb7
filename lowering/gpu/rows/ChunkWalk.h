// SPDX-License-Identifier: Apache-2.0
//
// How the threads of a block share a long row: chunk c is of thread c modulo
// the number of threads, which takes several at a time. The last chunk may have
// fewer elements than the others.
#ifndef ROTA_LOWERING_GPU_ROWS_CHUNKWALK_H
#define ROTA_LOWERING_GPU_ROWS_CHUNKWALK_H

#include "lowering/gpu/GpuBuilder.h"

namespace rota::lowering {

struct ChunkWalk {
  int64_t width;   // elements of a chunk
  int64_t chunks;  // whole ones of the row
  int64_t threads; // of the block
  int64_t group;   // chunks that a thread loads before it uses them
  int64_t tail;    // elements of the last chunk, after the whole ones; or 0

  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      llvm::ArrayRef<mlir::Value> firsts, int64_t count,
      mlir::ValueRange carried)>;
  /// Calls body(firsts, count, carried) for all chunks of this thread: `group`
  /// of them at first, then one at a time, the last chunk of the row at the
  /// end. `firsts` are columns (i32), `count` the elements of each chunk.
  llvm::SmallVector<mlir::Value> run(GpuBuilder &k, mlir::ValueRange initial,
                                     Body body) const;
  /// The thread that has the column (i32).
  mlir::Value ownerOf(GpuBuilder &k, mlir::Value column) const;
};

/// RowBuilder::logSumExp; `end` is i32. The row is read once, with a maximum
/// and a sum that each thread corrects as it goes on (Milakov and Gimelshein
/// 2018).
mlir::Value emitLogSumExp(GpuBuilder &k, const ChunkWalk &walk, Memory line,
                          mlir::Value end);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ROWS_CHUNKWALK_H
