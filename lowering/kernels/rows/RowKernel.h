// SPDX-License-Identifier: Apache-2.0
//
// The body of a `rota.kernel` as vector code: what one row does, in as few
// passes over its columns as its reductions allow.
#ifndef ROTA_LOWERING_KERNELS_ROWS_ROWKERNEL_H
#define ROTA_LOWERING_KERNELS_ROWS_ROWKERNEL_H

#include "lowering/kernels/rows/KeptValues.h"
#include "lowering/kernels/rows/RowValues.h"

namespace rota::lowering {

/// Emits rows of one kernel into one native function. A value that a later
/// pass needs again is loaded from the stack where it is costly, and else
/// computed again from the operands, which are in the cache by then.
class RowKernel {
public:
  explicit RowKernel(const RowBody &body)
      : body(body), values(body), kept(keptValues(body)) {}

  /// Begins a function: `operands` are the operands' pointers, `results` those
  /// of results of kind `row`, and of the partial sums of the current block of
  /// rows for kind `sum`.
  void begin(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange operands,
             llvm::ArrayRef<bool> accumulate);

  /// Emits row `row`.
  void emitRow(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
               mlir::ValueRange results);

private:
  using Place = RowValues::Place;

  void emitPass(mlir::ImplicitLocOpBuilder &b, int pass, mlir::Value row,
                mlir::ValueRange results);
  void emitSegment(mlir::ImplicitLocOpBuilder &b, const Segment &segment,
                   llvm::ArrayRef<mlir::rota::ReduceOp> reductions, int pass,
                   mlir::Value row, mlir::ValueRange results,
                   llvm::MutableArrayRef<mlir::Value> totals);
  /// The kept values of earlier passes, loaded.
  RowValues::Values loadKept(mlir::ImplicitLocOpBuilder &b, int pass,
                             mlir::Value column, int64_t width);
  /// Stores the values that pass `pass` computes first.
  void storeKept(mlir::ImplicitLocOpBuilder &b, int pass, const Place &place);
  void emitResults(mlir::ImplicitLocOpBuilder &b, int64_t rank,
                   const Place &place, mlir::ValueRange results);

  RowBody body;
  RowValues values;
  llvm::SmallVector<KeptValue> kept;
  llvm::SmallVector<mlir::Value> keptRows; // where they are, a row each
  llvm::SmallVector<bool> accumulate;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWS_ROWKERNEL_H
