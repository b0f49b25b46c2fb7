// SPDX-License-Identifier: Apache-2.0
//
// The body of a `rota.kernel` as code of a GPU's threads.
#ifndef ROTA_LOWERING_GPU_ROWS_GPUROWKERNEL_H
#define ROTA_LOWERING_GPU_ROWS_GPUROWKERNEL_H

#include "lowering/gpu/GpuBuilder.h"
#include "lowering/gpu/rows/RowGeometry.h"
#include "lowering/kernels/rows/RowValues.h"

namespace rota::lowering {

/// Emits one kernel over `rows` rows. Arguments: the operands, then the
/// results; in the place of a result of kind `sum` a row of partial sums for
/// each slot, in f32. A thread reads and writes the same columns of a row, and
/// reads them before it writes them, so that results may lie on operands.
class GpuRowKernel {
public:
  GpuRowKernel(const RowBody &body, const RowGeometry &geometry, int64_t rows,
               llvm::ArrayRef<bool> accumulate)
      : body(body), geometry(geometry), rows(rows), accumulate(accumulate),
        values(body) {}

  void emit(GpuBuilder &k);
  /// The same with that many rows (i64), known when it runs. It has no results
  /// of kind `sum`.
  void emit(GpuBuilder &k, mlir::Value count) {
    rowCount = count;
    emit(k);
  }

private:
  using Place = RowValues::Place;
  using Reductions = llvm::ArrayRef<mlir::rota::ReduceOp>;
  /// One store of a result: its index in elements.
  struct Store {
    mlir::Value value;
    unsigned result;
    mlir::Value index;
  };
  /// The row at hand. A condition is null where it always holds.
  struct Row {
    mlir::Value number;  // i64
    mlir::Value inRange; // whether the row exists
    mlir::Value turn;    // 0 and 1 for rows in turns, i32; null for one row
  };

  void emitChunks(GpuBuilder &k);
  void emitChunk(GpuBuilder &k, mlir::Value number);
  /// Chunk, or single element after the last one, number `piece` of a row.
  void emitPiece(GpuBuilder &k, mlir::Value piece, Place place);
  void findRow(GpuBuilder &k);
  void emitSlots(GpuBuilder &k);
  /// Emits a row, of which `chunks` has what is loaded already; returns `sums`
  /// with the row added.
  llvm::SmallVector<mlir::Value>
  emitRow(GpuBuilder &k, const Row &row,
          llvm::MutableArrayRef<RowValues::Values> chunks,
          mlir::ValueRange sums);
  /// Whether each row has columns of its own. No other row's results lie there.
  bool isLoadedAhead(mlir::BlockArgument operand);
  /// The columns of such operands in this thread's chunks of a row.
  llvm::SmallVector<mlir::Value> loadAhead(GpuBuilder &k, mlir::Value row);
  void setLoaded(mlir::ValueRange loaded,
                 llvm::MutableArrayRef<RowValues::Values> chunks);
  void emitScalars(GpuBuilder &k, int pass, const Row &row);
  void emitPassInRegisters(GpuBuilder &k, int pass, const Row &row,
                           llvm::MutableArrayRef<RowValues::Values> chunks);
  void emitPassInLoop(GpuBuilder &k, int pass, const Row &row);
  /// Calls body(chunk) for the chunks of this thread.
  void eachChunk(GpuBuilder &k,
                 llvm::function_ref<void(mlir::Value chunk)> body);
  void combineRow(GpuBuilder &k, Reductions reductions, const Row &row,
                  mlir::ValueRange parts);
  void storeColumns(GpuBuilder &k, const Row &row,
                    llvm::ArrayRef<llvm::SmallVector<Store>> stores);
  void storeScalars(GpuBuilder &k, const Row &row);

  llvm::SmallVector<mlir::Value> emptySums(GpuBuilder &k);
  llvm::SmallVector<mlir::Value>
  addSums(GpuBuilder &k, const Row &row,
          llvm::MutableArrayRef<RowValues::Values> chunks,
          mlir::ValueRange sums);
  void storeSums(GpuBuilder &k, mlir::ValueRange sums);
  /// Whether a result is a sum of columns that is not kept in registers.
  bool isSumApart(unsigned result) const;
  void allocateSums(GpuBuilder &k);
  /// A chunk of such a sum.
  struct SumPlace {
    Memory memory;
    mlir::Value index;
  };
  SumPlace sumPlaceOf(GpuBuilder &k, unsigned result, mlir::Value chunk);
  void clearSums(GpuBuilder &k);
  void addSumApart(GpuBuilder &k, unsigned result, mlir::Value chunk,
                   mlir::Value mine);
  /// Stores the sums in shared memory as rows of partial sums.
  void copySums(GpuBuilder &k);

  Place placeOf(GpuBuilder &k, mlir::Value row, mlir::Value chunk,
                RowValues::Values *atColumns);
  /// The chunk number `i` of this thread, or the row's last.
  mlir::Value chunkOf(GpuBuilder &k, int64_t i);
  /// Whether this thread has a chunk number `i`; null: it has.
  mlir::Value hasChunk(GpuBuilder &k, int64_t i);
  mlir::Value both(GpuBuilder &k, mlir::Value a, mlir::Value b);
  void whenAll(GpuBuilder &k, mlir::Value condition,
               llvm::function_ref<void()> code);

  /// The results of kind `row` and of this rank at `place`, as they are stored.
  void collectStores(GpuBuilder &k, int64_t rank, const Place &place,
                     llvm::SmallVectorImpl<Store> &stores);
  void storeAll(GpuBuilder &k, llvm::ArrayRef<Store> stores);
  Memory resultMemory(GpuBuilder &k, unsigned result);

  RowBody body;
  RowGeometry geometry;
  int64_t rows;
  mlir::Value rowCount; // null: `rows`
  llvm::SmallVector<bool> accumulate;
  RowValues values;
  mlir::Value local; // number of the thread in its row, i32
  mlir::Value slot;  // i64
  /// The number of its row's chunk 0 among the chunks of the block, i32.
  mlir::Value first;
  llvm::SmallVector<Memory> sharedSums; // by result; null: not there
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ROWS_GPUROWKERNEL_H
