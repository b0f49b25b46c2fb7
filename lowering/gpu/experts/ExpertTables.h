// SPDX-License-Identifier: Apache-2.0
//
// Tables that say where the rows of experts lie, made from counts.
#ifndef ROTA_LOWERING_GPU_EXPERTS_EXPERTTABLES_H
#define ROTA_LOWERING_GPU_EXPERTS_EXPERTTABLES_H

#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/experts/Groups.h"

namespace rota::lowering {

/// For each sequence the first row and the end of each expert's rows, and
/// the rows that each block needs where it has fewer, otherwise 0, all i32.
class GroupTable {
public:
  GroupTable(const GroupShape &shape, mlir::Value base)
      : shape(shape), base(base) {}

  static int64_t stride(const GroupShape &shape) {
    return 2 * shape.experts + shape.blocks;
  }
  Memory firsts(GpuBuilder &k, mlir::Value sequence) const {
    return part(k, sequence, 0);
  }
  Memory ends(GpuBuilder &k, mlir::Value sequence) const {
    return part(k, sequence, shape.experts);
  }
  Memory overfull(GpuBuilder &k, mlir::Value sequence) const {
    return part(k, sequence, 2 * shape.experts);
  }

private:
  Memory part(GpuBuilder &k, mlir::Value sequence, int64_t first) const {
    return k.offset({base, k.ops().getI32Type()},
                    k.add(k.mul(sequence, stride(shape)), first));
  }

  const GroupShape &shape;
  mlir::Value base;
};

/// The rows of each expert in all sequences, one after the other, and their
/// tiles, all i32.
class ExpertTiles {
public:
  ExpertTiles(const GroupShape &shape, mlir::Value base)
      : shape(shape), base(base) {}

  static int64_t count(const GroupShape &shape) {
    return shape.experts * (stride(shape) + 1) + 1;
  }
  /// Rows of an expert in the sequences before each one, then in all.
  Memory befores(GpuBuilder &k, mlir::Value expert) const {
    return part(k, k.mul(expert, stride(shape)));
  }
  /// Not 0 where an expert is in a block with too few rows in any sequence.
  Memory overfull(GpuBuilder &k, mlir::Value expert) const {
    return k.offset(befores(k, expert), k.i64(shape.batch + 1));
  }
  /// Tiles of the experts before each one, then of all.
  Memory starts(GpuBuilder &k) const {
    return part(k, k.i64(shape.experts * stride(shape)));
  }

private:
  static int64_t stride(const GroupShape &shape) { return shape.batch + 2; }
  Memory part(GpuBuilder &k, mlir::Value first) const {
    return k.offset({base, k.ops().getI32Type()}, first);
  }

  const GroupShape &shape;
  mlir::Value base;
};

/// How the tables of an op are made.
struct TableForm {
  int64_t tileRows; // of the tiles of experts
  // Whether the first block of experts with too few rows is noted, and whether
  // operand 3 of the op is the number in the model of the first expert here.
  bool notes = false, hasOffset = false;
};

/// A plan whose only call makes a GroupTable in temporary 0 and an ExpertTiles
/// in temporary 1. Operand 2 of the op has the counts.
llvm::FailureOr<KernelPlan> planExpertTables(mlir::Operation *op,
                                             const GroupShape &shape,
                                             const TableForm &form,
                                             KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_EXPERTTABLES_H
