// SPDX-License-Identifier: Apache-2.0
//
// The body of a `rota.kernel` as emitters of every device see it: the order in
// which its values can be computed.
#ifndef ROTA_LOWERING_KERNELS_ROWS_ROWBODY_H
#define ROTA_LOWERING_KERNELS_ROWS_ROWBODY_H

#include "ir/rota/Rota.h"

#include "llvm/ADT/DenseMap.h"

namespace rota::lowering {

/// A value's level is the number of reductions along the row that it needs, one
/// after the other. Pass k over the columns computes the reductions of values
/// of level k; the last pass stores all results, after everything was read, so
/// that a result may overwrite an operand.
class RowBody {
public:
  /// Checks that the kernel can be emitted; emits an error otherwise.
  static llvm::FailureOr<RowBody> get(mlir::rota::KernelOp kernel);
  /// The kernel on the rows of the launch, as they lie in memory.
  static llvm::FailureOr<RowBody> get(mlir::rota::LaunchOp launch);

  mlir::rota::KernelOp getKernel() const { return kernel; }
  /// Elements of a row; 0 when all values are one per row.
  int64_t getColumns() const { return columns; }
  /// Elements from one row to the next.
  int64_t getStride() const { return stride ? stride : columns; }
  int getPasses() const { return passes; }

  llvm::ArrayRef<mlir::BlockArgument> getOperands() const;
  /// The row of operand `number` that goes with row d0.
  mlir::AffineMap getMap(unsigned number) const;
  mlir::ValueRange getResults() const;
  bool isSum(unsigned result) const;
  /// The reductions along the row that pass `pass` computes.
  llvm::SmallVector<mlir::rota::ReduceOp> getReductions(int pass) const;
  /// The values of the columns that pass `pass` reduces or stores.
  llvm::SmallVector<mlir::Value> getColumnRoots(int pass) const;

  /// 1 for a row's columns, 0 for one value per row.
  static int64_t rankOf(mlir::Value value);
  static mlir::Type elementOf(mlir::Value value);

private:
  explicit RowBody(mlir::rota::KernelOp kernel) : kernel(kernel) {}
  llvm::LogicalResult check();
  void computeLevels();

  mutable mlir::rota::KernelOp kernel;
  int64_t columns = 0, stride = 0; // no stride: the columns
  llvm::DenseMap<mlir::Value, int> levels;
  int passes = 0;
};

/// The neutral element of a reduction.
float neutralOf(mlir::rota::ReduceOp reduce);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWS_ROWBODY_H
