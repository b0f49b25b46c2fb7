// SPDX-License-Identifier: Apache-2.0
//
// The values of a kernel's body in code, for emitters of every device: scalars
// of a row and vectors of its columns.
#ifndef ROTA_LOWERING_KERNELS_ROWS_ROWVALUES_H
#define ROTA_LOWERING_KERNELS_ROWS_ROWVALUES_H

#include "lowering/kernels/Emit.h"
#include "lowering/kernels/rows/RowBody.h"

#include "llvm/ADT/DenseSet.h"

namespace rota::lowering {

/// Emits each value once for each place that asks for it.
class RowValues {
public:
  /// A value in code: in f32 (bf16 widened; integers as they are) and, once
  /// rounded, in bf16. Either is made from the other when asked for.
  struct Emitted {
    mlir::Value wide, narrow;
  };
  using Values = llvm::DenseMap<mlir::Value, Emitted>;
  /// The place in the row that code is emitted for; the whole row where the
  /// width is 0.
  struct Place {
    mlir::Value row, column; // i64
    int64_t width = 0;
    /// Bytes up to which addresses are multiples of a vector's size; 0: of an
    /// element's alone.
    int64_t alignment = 0;
    Values *values = nullptr; // values of the columns that are emitted so far
  };

  explicit RowValues(const RowBody &body) : body(body) {}

  /// Begins a function with the operands' pointers. Values that all rows share
  /// are loaded here.
  void begin(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange operands);
  /// Begins a row.
  void beginRow() { scalars = shared; }

  /// A value at a place, in f32 or rounded to bf16.
  mlir::Value wide(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                   const Place &place);
  mlir::Value narrow(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                     const Place &place);
  /// A value in the type that its tensor is stored in.
  mlir::Value stored(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                     const Place &place);

  /// A value of the current row.
  mlir::Value scalar(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                     mlir::Value row);
  /// Emits the values per row that `value`, or what it is made of, repeats.
  void emitScalarsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                     mlir::Value row, llvm::DenseSet<mlir::Value> &seen);
  /// The result of a reduction along the current row, in f32.
  void setTotal(mlir::ImplicitLocOpBuilder &b, mlir::rota::ReduceOp reduce,
                mlir::Value total);

  /// Elements before those at `place` in a tensor of the place's rows.
  mlir::Value indexOf(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                      mlir::Value row, const Place &place) const;

private:
  Emitted &emit(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                const Place &place);
  Emitted emitArgument(mlir::ImplicitLocOpBuilder &b,
                       mlir::BlockArgument argument, const Place &place);
  Emitted emitConstant(mlir::ImplicitLocOpBuilder &b,
                       mlir::arith::ConstantOp op, const Place &place);
  Emitted emitOp(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op,
                 const Place &place);

  RowBody body;
  llvm::SmallVector<mlir::Value> operands; // pointers
  Values shared;                           // values that all rows share
  Values scalars;                          // values of the current row
};

/// Two parts of a reduction as one.
mlir::Value combineParts(mlir::ImplicitLocOpBuilder &b,
                         mlir::rota::ReduceOp reduce, mlir::Value left,
                         mlir::Value right);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWS_ROWVALUES_H
