// SPDX-License-Identifier: Apache-2.0
//
// The values of a function that live outside scratch while its task runs.
#ifndef ROTA_LOWERING_EXECUTABLE_FIXEDADDRESSES_H
#define ROTA_LOWERING_EXECUTABLE_FIXEDADDRESSES_H

#include "ir/rota/experts/Experts.h"
#include "lowering/executable/ConstantTables.h"
#include "lowering/executable/ValueUses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace rota::lowering {

/// An address: bytes after the start of one of the frame's blocks.
struct BufferAddress {
  memory::FrameField field = memory::Scratch;
  int64_t offset = 0;
};

/// The addresses of a function's arguments, results and parameters in the
/// frame.
struct FunctionAddresses {
  llvm::SmallVector<BufferAddress> arguments, results;
  struct ParamOffsets {
    int64_t value, gradient; // offsets in the parameter and gradient blocks
  };
  llvm::DenseMap<mlir::Operation *, ParamOffsets> params; // by rota.param
};

/// Whether the op computes its results in a task: neither a view, nor an
/// address that the frame gives, nor the function's end.
bool isComputed(mlir::Operation *op);

/// Whether `op` may write result `result` where it reads `source`, in one
/// operand alone.
bool canOverwrite(mlir::Operation *op, unsigned result, mlir::Value source);

/// Whether both are the same bytes of the frame.
bool isSameAddress(const BufferAddress &a, const BufferAddress &b);

/// Arguments, parameters and constants lie where the frame has them. A result
/// is computed where it leaves the function, unless an argument lies there that
/// is still read. A gradient is added where it accumulates if its op can. If a
/// collective works in place and alone reads a value, the value is computed
/// where the collective's result goes. Parts lie where the whole does.
class FixedAddresses {
public:
  /// The addresses of the values of `function`, whose ops are `ops`. Adds the
  /// constants that it reads to `tables`. Fails with an error at an op that
  /// names a parameter or an observation without an address.
  static llvm::FailureOr<FixedAddresses>
  get(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Operation *> ops,
      const FunctionAddresses &frame, const PartPlaces &places,
      const ValueUses &uses, ConstantTables &tables, const ProgramMesh &mesh);

  /// The address of `value` or of what it views; null: it lies in scratch.
  const BufferAddress *lookup(mlir::Value value) const;
  /// The element type of what the op that computes the value adds it to; null:
  /// it overwrites what is there.
  mlir::Type accumulatorOf(mlir::Value value) const {
    return accumulators.lookup(mlir::rota::viewedValue(value));
  }
  bool accumulates(mlir::Value value) const {
    return bool(accumulatorOf(value));
  }

  BufferAddress gradientAddress(mlir::rota::AccumulateOp op) const;
  /// The sums that a function adds to auxiliary losses are in its order.
  BufferAddress auxiliaryAddress(mlir::rota::AuxiliaryLossOp op) const;
  /// Observed tables, too, each where a block of an arena may start.
  BufferAddress observedAddress(mlir::rota::ObserveOp op) const {
    return {memory::Observed, observed.lookup(op)};
  }

private:
  FixedAddresses(const FunctionAddresses &frame, const PartPlaces &places)
      : frame(&frame), places(&places) {}

  void placeTables(mlir::func::FuncOp function);
  llvm::LogicalResult placeParameter(mlir::Operation *op);
  llvm::LogicalResult placeMean(mlir::rota::ObservedMeanOp op);
  void placeConstant(mlir::Operation *op, ConstantTables &tables,
                     const ProgramMesh &mesh);
  void setDestinations(mlir::Operation *op, const ValueUses &uses);
  void setSource(mlir::Operation *op, const ValueUses &uses);
  void setParts(mlir::ValueRange parts);
  bool isFree(mlir::Value value) const;
  bool mayLieAt(const BufferAddress &address, mlir::Value value,
                const ValueUses &uses) const;
  const FunctionAddresses::ParamOffsets *
  paramOffsets(mlir::Operation *op) const;

  const FunctionAddresses *frame;
  const PartPlaces *places;
  llvm::SmallVector<mlir::rota::AuxiliaryLossOp> auxiliary;
  llvm::DenseMap<mlir::Operation *, int64_t> observed; // offsets
  struct Mean {
    int64_t offset, columns;
  };
  llvm::StringMap<Mean> means; // after the tables of that name
  llvm::DenseMap<mlir::Value, BufferAddress> addresses; // never of views
  llvm::DenseMap<mlir::Value, mlir::Type> accumulators;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_FIXEDADDRESSES_H
