// SPDX-License-Identifier: Apache-2.0
//
// The body of a `rota.kernel` as vector code: what one row does, in as few
// passes over its columns as its reductions allow.
#ifndef ROTA_LOWERING_KERNELS_ROWKERNEL_H
#define ROTA_LOWERING_KERNELS_ROWKERNEL_H

#include "ir/rota/Rota.h"
#include "lowering/kernels/Emit.h"

#include "llvm/ADT/DenseMap.h"

namespace rota::lowering {

/// Emits rows of one kernel into one native function.
///
/// A value's level is the number of reductions along the row that it needs, one
/// after the other. Pass k over the columns computes the reductions of values
/// of level k; the last pass stores all results, after everything was read, so
/// that a result may overwrite an operand. What a later pass needs again it
/// computes again from the operands, which are in the cache by then.
class RowKernel {
public:
  /// Checks that the kernel can be emitted; emits an error otherwise.
  static llvm::FailureOr<RowKernel> get(mlir::rota::KernelOp kernel);

  /// Elements of a row; 0 when all values are one per row.
  int64_t getColumns() const { return columns; }

  /// Begins a function: `operands` are the operands' pointers, `results` those
  /// of results of kind `row`, and of the partial sums of the current block of
  /// rows for kind `sum`. Values that all rows share are loaded here.
  void begin(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange operands,
             llvm::ArrayRef<bool> accumulate);

  /// Emits row `row`.
  void emitRow(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
               mlir::ValueRange results);

private:
  /// A value in code: in f32 (bf16 widened; integers as they are) and, once
  /// rounded, in bf16. Either is made from the other when asked for.
  struct Emitted {
    mlir::Value wide, narrow;
  };
  using Values = llvm::DenseMap<mlir::Value, Emitted>;
  /// The place in the row that code is emitted for; the whole row where the
  /// width is 0.
  struct Place {
    mlir::Value row, column;
    int64_t width = 0;
    Values *values = nullptr;
  };

  explicit RowKernel(mlir::rota::KernelOp kernel) : kernel(kernel) {}
  llvm::LogicalResult check();
  void computeLevels();
  int levelOf(mlir::Value value) const { return levels.lookup(value); }

  void emitPass(mlir::ImplicitLocOpBuilder &b, int pass, mlir::Value row,
                mlir::ValueRange results);
  void emitSegment(mlir::ImplicitLocOpBuilder &b, const Segment &segment,
                   llvm::ArrayRef<mlir::rota::ReduceOp> reductions,
                   bool storing, mlir::Value row, mlir::ValueRange results,
                   llvm::MutableArrayRef<mlir::Value> totals);
  /// Emits the values per row that `value`, or what it is made of, repeats.
  void emitScalarsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                     mlir::Value row, llvm::DenseSet<mlir::Value> &seen);
  void emitResults(mlir::ImplicitLocOpBuilder &b, int64_t rank,
                   const Place &place, mlir::ValueRange results);

  mlir::Value wide(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                   const Place &place);
  mlir::Value narrow(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                     const Place &place);
  Emitted &emit(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                const Place &place);
  Emitted emitArgument(mlir::ImplicitLocOpBuilder &b,
                       mlir::BlockArgument argument, const Place &place);
  Emitted emitConstant(mlir::ImplicitLocOpBuilder &b,
                       mlir::arith::ConstantOp op, const Place &place);
  Emitted emitOp(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op,
                 const Place &place);

  mlir::rota::KernelOp kernel;
  int64_t columns = 0;
  llvm::DenseMap<mlir::Value, int> levels;
  int passes = 0;
  llvm::SmallVector<mlir::Value> operands; // pointers
  llvm::SmallVector<bool> accumulate;
  Values shared;  // values per row that all rows share
  Values scalars; // values of the current row
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWKERNEL_H
