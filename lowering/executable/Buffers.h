// SPDX-License-Identifier: Apache-2.0
//
// Where each value of a function lives while its task runs, and the steps that
// the task consists of.
#ifndef ROTA_LOWERING_EXECUTABLE_BUFFERS_H
#define ROTA_LOWERING_EXECUTABLE_BUFFERS_H

#include "lowering/executable/Collectives.h"
#include "lowering/executable/Gemm.h"
#include "lowering/kernels/KernelPlan.h"
#include "lowering/memory/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace rota::lowering {

/// An address: bytes after the start of one of the frame's blocks or, with
/// `data`, the first byte of a constant of the object file.
struct BufferAddress {
  memory::FrameField field = memory::Scratch;
  int64_t offset = 0;
  mlir::DenseElementsAttr data;
};

/// What the frame says of a function's operands, results and parameters.
struct FunctionPlaces {
  llvm::SmallVector<BufferAddress> arguments, results;
  struct ParamPlace {
    int64_t value, gradient; // offsets in the parameter and gradient blocks
  };
  llvm::DenseMap<mlir::Operation *, ParamPlace> params; // by rota.param
};

/// One piece of a task's code.
struct TaskStep {
  enum class Kind {
    Kernels,    // `kernels` on operands, results and temporaries
    Gemm,       // `gemm` of operands 0 and 1 into result 0
    Collective, // number `collective` of operand 0 into result 0
    Copy        // `bytes` of operand 0 into result 0
  } kind;
  mlir::Location loc;
  KernelPlan kernels{};
  GemmPlan gemm{};
  int collective = -1;
  int64_t bytes = 0;
  llvm::SmallVector<BufferAddress> operands{}, results{}, temporaries{};
};

struct FunctionBuffers {
  std::vector<TaskStep> steps; // in order
  int64_t scratchBytes = 0;
};

/// The block of constants that all tasks share: each table and each offset of a
/// part once, and the cotangents of all auxiliary losses where one is used.
class ConstantTables {
public:
  explicit ConstantTables(std::vector<AuxiliaryLoss> losses)
      : losses(std::move(losses)) {}
  /// The place of the table that `op` makes.
  int64_t add(mlir::rota::RotaryTableOp op);
  /// The place of the offset that `op` is.
  int64_t add(mlir::rota::ShardOffsetOp op, const ProgramMesh &mesh);
  /// The place of the cotangent that `op` is.
  int64_t add(mlir::rota::AuxiliaryCotangentOp op);
  const std::vector<RotaryTable> &tables() const { return list; }
  const std::vector<ShardOffset> &shardOffsets() const { return offsets; }
  const std::vector<AuxiliaryLoss> &auxiliaryLosses() const { return losses; }
  /// The number of that loss.
  int auxiliaryLoss(llvm::StringRef name) const;
  /// f32, one for each auxiliary loss; -1: no task reads one.
  int64_t auxiliaryCotangents() const { return cotangents; }
  int64_t bytes() const { return packer.bytes(); }

private:
  std::vector<AuxiliaryLoss> losses;
  int64_t cotangents = -1;
  std::vector<RotaryTable> list;
  std::vector<ShardOffset> offsets;
  memory::Packer packer;
};

/// Assigns buffers inside `function`, whose body holds kernels' launches and
/// ops with kernels of their own. Results are computed where they leave,
/// gradients added where they accumulate, views share their operand's bytes,
/// and scratch is reused by best fit as values die; an op overwrites a dying
/// operand where its plan allows, an all-reduce always: what only it reads is
/// computed where the sum goes. A copy is left only for a result that is an
/// argument, a parameter or another result. Fails with an error at an op that
/// cannot be lowered.
llvm::FailureOr<FunctionBuffers> assignBuffers(mlir::func::FuncOp function,
                                               const FunctionPlaces &places,
                                               ConstantTables &tables,
                                               CollectiveTable &collectives,
                                               KernelLibrary &library);

/// Bytes of a tensor's elements.
int64_t tensorBytes(mlir::Type type);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_BUFFERS_H
