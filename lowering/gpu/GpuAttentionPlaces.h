// SPDX-License-Identifier: Apache-2.0
//
// The parts that all of attention's kernels on a GPU share: arguments, the rows
// of a block of threads in global memory, walks over the other rows, and the
// running softmax.
#ifndef ROTA_LOWERING_GPU_GPUATTENTIONPLACES_H
#define ROTA_LOWERING_GPU_GPUATTENTIONPLACES_H

#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/AttentionCode.h"

namespace rota::lowering {

/// The arguments of attention's kernels, in order.
struct AttentionArgument {
  enum : unsigned { Query, Key, Value, Output, Logsumexp, Count };
};

/// The arguments of the kernels of its derivative, in order; then the
/// cotangents of keys and values, or that of queries.
struct AttentionGradArgument {
  enum : unsigned {
    Cotangent,
    Query,
    Key,
    Value,
    Logsumexp,
    Delta,
    FirstResult
  };
};

/// The elements of one head in global memory, `stride` elements from position
/// to position.
using HeadRows = StridedRows;

/// Blocks of threads, and their rows in global memory. Numbers are i32.
class GpuAttentionPlaces {
public:
  GpuAttentionPlaces(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape) {}

  /// The queries of this block of threads: `rows` from `first` on.
  struct QueryBlock {
    mlir::Value batch, head, first;
  };
  QueryBlock queryBlock(int64_t rows);

  /// The keys of this block of threads: `rows` from `first` on. `parts` blocks
  /// share them.
  struct KeyBlock {
    mlir::Value batch, keyHead, first, part;
  };
  KeyBlock keyBlock(int64_t rows, int64_t parts = 1);

  /// Queries of one head, from `first` on.
  struct QueryTile {
    mlir::Value head, first;
  };
  /// The first query head of a key head.
  mlir::Value firstHead(mlir::Value keyHead) {
    return k.mul(keyHead, shape.group());
  }
  /// Calls `body` with the tiles of `rows` queries that see keys of the block:
  /// by query heads, then ascending. The next tile after the last one is of the
  /// head after those of the key head.
  using TileBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      QueryTile tile, QueryTile next, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> walkQueries(const KeyBlock &block,
                                             int64_t rows,
                                             mlir::ValueRange initial,
                                             TileBody body);

  /// The rows of a head of the query's or the key's shape.
  HeadRows queryRows(Memory memory, mlir::Value batch, mlir::Value head);
  HeadRows keyRows(Memory memory, mlir::Value batch, mlir::Value keyHead);
  /// The row of a query head in [batch, head, position].
  Memory lineOf(Memory memory, mlir::Value batch, mlir::Value head);

  /// Two f32 for each query of a head, read by the derivative.
  struct QueryLines {
    Memory logsumexp, delta;
  };
  QueryLines queryLines(mlir::Value batch, mlir::Value head);
  /// -log2(e) * logsumexp, and delta, of the query at `position`; one beyond
  /// the sequence repeats the last one.
  std::pair<mlir::Value, mlir::Value> loadLines(const QueryLines &lines,
                                                mlir::Value position);
  mlir::Value toBaseTwo(mlir::Value logsumexp);

protected:
  GpuBuilder &k;
  AttentionShape shape;
};

/// The size of a kernel: each block of `threads` threads has `rows` positions
/// of one of `heads` heads.
struct AttentionLaunch {
  unsigned arguments;
  int64_t heads, rows, threads;
};

/// The symbol of the kernel `name`, whose code `body` writes.
llvm::FailureOr<std::string>
emitAttentionKernel(KernelLibrary &library, mlir::Location loc,
                    llvm::StringRef name, const AttentionShape &shape,
                    const AttentionLaunch &launch,
                    llvm::function_ref<void(GpuBuilder &k)> body);

/// Of a thread's rows: the maxima of the scores so far, this thread's shares of
/// the weights' sums, and its weighted sums of values.
struct RunningSoftmax {
  using Values = llvm::SmallVector<mlir::Value>;
  Values highest, total, sums;

  static RunningSoftmax start(GpuBuilder &k, int64_t rows, Values zeros);
  /// As one list, and back.
  Values all() const;
  static RunningSoftmax of(mlir::ValueRange all, int64_t rows);
};

/// Combines each of `values` over `threads` threads of a warp.
llvm::SmallVector<mlir::Value>
combineEach(GpuBuilder &k, mlir::ValueRange values, int64_t threads,
            llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> join);

/// Lets the kernel have the registers of a multiprocessor that holds no more
/// than `blocks` blocks. By itself ptxas rather spills some than misses one of
/// its steps (128).
void leaveRegistersFor(GpuBuilder &k, int64_t blocks);

/// 2 to the power of a number: one instruction, which takes numbers below
/// 2^-126 for 0.
mlir::Value fastExp2(GpuBuilder &k, mlir::Value value);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_GPUATTENTIONPLACES_H
