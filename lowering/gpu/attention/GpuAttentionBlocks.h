// SPDX-License-Identifier: Apache-2.0
//
// The parts that all of attention's kernels on a GPU share: arguments, the rows
// of a block of threads in global memory, walks over the other rows, and the
// running softmax.
#ifndef ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONBLOCKS_H
#define ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONBLOCKS_H

#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/attention/AttentionShape.h"
#include "lowering/kernels/attention/AttentionWalk.h"
#include "lowering/kernels/attention/StridedRows.h"

namespace rota::lowering {

/// The last arguments of each kernel, where they are there: documents; then the
/// position and the distance in blocks or the position of the keys.
inline unsigned countLastArguments(const AttentionShape &shape) {
  return shape.hasDocuments + (shape.dependsOnPosition ? 2 : 0);
}

/// The arguments of attention's kernels, in order; then, where they are there,
/// the output and logsumexp of other keys, sinks, and last arguments.
struct AttentionArgument {
  enum : unsigned { Query, Key, Value, Output, Logsumexp, Previous };
  static unsigned sinks(const AttentionShape &shape) {
    return Previous + (shape.hasPrevious ? 2 : 0);
  }
  static unsigned last(const AttentionShape &shape) {
    return sinks(shape) + (shape.hasSinks ? 1 : 0);
  }
  static unsigned count(const AttentionShape &shape) {
    return last(shape) + countLastArguments(shape);
  }
};

/// The arguments of the kernels of its derivative, in order; then the
/// cotangents of keys and values, or that of queries; then last arguments.
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
  static unsigned count(const AttentionShape &shape, unsigned results) {
    return FirstResult + results + countLastArguments(shape);
  }
};

/// Blocks of threads, and their rows in global memory. Numbers are i32.
class GpuAttentionBlocks {
public:
  GpuAttentionBlocks(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), walk(k, shape.mask),
        queryWalk(k, shape.mask.transposed()) {}

  /// Finds documents, and reads whether queries see any keys of the block, out
  /// of the kernel's last arguments, which begin with number `first`. Comes
  /// before blocks and walks.
  void readLastArguments(unsigned first);
  /// Whether a walk may have no tile.
  bool mayBeEmpty() const { return seesAny || shape.mask.offset != 0; }

  /// The queries of this block of threads: `rows` from `first` on.
  struct QueryBlock {
    mlir::Value batch, head, first;
  };
  QueryBlock queryBlock(int64_t rows);
  /// The first key of the document of the query at `position` or, if that is
  /// beyond the sequence, of the last one: there are documents.
  mlir::Value documentStart(mlir::Value position);
  /// The first tile of `rows` keys that queries from `first` on see.
  mlir::Value keyBegin(mlir::Value first, int64_t rows);

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
  /// The first tile of `rows` queries, a divisor of the block's rows, that see
  /// keys of the block.
  QueryTile firstTile(const KeyBlock &block, int64_t rows) {
    return {firstHead(block.keyHead), queryWalk.begin(block.first, rows)};
  }
  /// The end of the keys that `own` queries from `first` on see, from `begin`
  /// on.
  mlir::Value keyEnd(mlir::Value begin, mlir::Value first, int64_t own) {
    return orNone(begin, walk.end(first, own));
  }
  /// The end of the queries that see one of the `own` keys of the block, by
  /// tiles of `rows` queries.
  mlir::Value queryEnd(const KeyBlock &block, int64_t own, int64_t rows,
                       QueryTile first) {
    mlir::Value end = queryWalk.end(block.first, own);
    if (shape.hasDocuments)
      end = documentsEnd(first.first, end, k.add(block.first, own), rows);
    return orNone(first.first, end);
  }
  /// Calls `body` with the tiles of `rows` queries that see one of the `own`
  /// keys of the block: by query heads, then ascending. The next tile after the
  /// last one is of the head after those of the key head.
  using TileBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      QueryTile tile, QueryTile next, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> walkQueries(const KeyBlock &block, int64_t own,
                                             int64_t rows,
                                             mlir::ValueRange initial,
                                             TileBody body);

  /// The rows of a head of a query, an output, a key or a value.
  StridedRows queryRows(Memory memory, mlir::Value batch, mlir::Value head) {
    return rowsOf(memory, batch, head, shape.heads, shape.size);
  }
  StridedRows outputRows(Memory memory, mlir::Value batch, mlir::Value head) {
    return rowsOf(memory, batch, head, shape.heads, shape.valueSize);
  }
  StridedRows keyRows(Memory memory, mlir::Value batch, mlir::Value keyHead) {
    return rowsOf(memory, batch, keyHead, shape.keyHeads, shape.size);
  }
  StridedRows valueRows(Memory memory, mlir::Value batch, mlir::Value keyHead) {
    return rowsOf(memory, batch, keyHead, shape.keyHeads, shape.valueSize);
  }
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

  /// The logsumexp of other keys than these, of the query at `position` or, if
  /// that is beyond the sequence, of the last one.
  mlir::Value previousLogsumexp(mlir::Value batch, mlir::Value head,
                                mlir::Value position);
  /// Writes the logsumexp of the query at `position`, where it is within the
  /// sequence: exactly that of the other keys where it sees none of these.
  void storeLogsumexp(mlir::Value logsumexp, mlir::Value batch,
                      mlir::Value head, mlir::Value position);

  /// Whether a tile of keys from `first` on may have keys beyond the sequence
  /// that the mask does not hide; null: never.
  mlir::Value isBeyond(mlir::Value first, int64_t rows);
  /// The walk over keys, and over queries.
  AttentionWalk &keys() { return walk; }
  AttentionWalk &queries() { return queryWalk; }
  /// Whether the mask hides keys beyond the sequence from every query in it.
  bool hidesBeyond() const { return shape.mask.after + shape.mask.offset == 0; }

protected:
  StridedRows rowsOf(Memory memory, mlir::Value batch, mlir::Value head,
                     int64_t heads, int64_t size);
  /// Documents are those of sequence `batch` from here on. Returns `batch`.
  mlir::Value selectSequence(mlir::Value batch);
  /// The end of the tiles of `rows` queries in [begin, end) that have a query
  /// whose document begins before the key `keyEnd`.
  mlir::Value documentsEnd(mlir::Value begin, mlir::Value end,
                           mlir::Value keyEnd, int64_t rows);
  mlir::Value orNone(mlir::Value begin, mlir::Value end) {
    return seesAny ? k.select(seesAny, end, begin) : end;
  }

  GpuBuilder &k;
  AttentionShape shape;
  AttentionWalk walk, queryWalk;
  mlir::Value seesAny; // i1; null: not known to see none
  Memory documents{};  // i32, of the block's sequence; unset without any
};

/// The size of a kernel: each block of `threads` threads has `rows` positions
/// of one of `heads` heads.
struct AttentionLaunch {
  unsigned arguments;
  int64_t heads, rows, threads;
};

/// The symbol of the kernel `name`, whose code `body` writes, and `grouped` as
/// emitGpuKernel says.
llvm::FailureOr<std::string>
emitAttentionKernel(KernelLibrary &library, mlir::Location loc,
                    llvm::StringRef name, const AttentionShape &shape,
                    const AttentionLaunch &launch,
                    llvm::function_ref<void(GpuBuilder &k)> body,
                    llvm::function_ref<void(GpuBuilder &k)> grouped = {});

/// State of a softmax over a thread's rows: the maxima of the scores so far,
/// this thread's shares of the weights' sums, and its weighted sums of values.
struct RunningSoftmax {
  using Values = llvm::SmallVector<mlir::Value>;
  Values highest, total, sums;

  /// After other keys, that together are as one key whose score is `logsumexp`
  /// for each row and whose value is their output, `sums`.
  static RunningSoftmax resume(GpuBuilder &k, Values logsumexp, Values sums,
                               int64_t threads);

  /// Without keys; with a sink in the head, in units of the scores, that is the
  /// maximum, and each of `threads` threads has its share of its weight 1. A
  /// maximum is finite, so that a row none of whose keys has come stays so.
  static RunningSoftmax start(GpuBuilder &k, int64_t rows, Values zeros,
                              mlir::Value sink, int64_t threads);
  /// The values as one list, and the state from such a list.
  Values all() const;
  static RunningSoftmax of(mlir::ValueRange all, int64_t rows);
};

/// Combines each of `values` over `threads` threads of a warp.
llvm::SmallVector<mlir::Value>
combineEach(GpuBuilder &k, mlir::ValueRange values, int64_t threads,
            llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> join);

/// 2 to the power of a number: one instruction, which takes numbers below
/// 2^-126 for 0.
mlir::Value fastExp2(GpuBuilder &k, mlir::Value value);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONBLOCKS_H
