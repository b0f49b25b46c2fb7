// SPDX-License-Identifier: Apache-2.0
//
// The block of constants that the runtime fills at start: rotary tables,
// offsets of parts, constant tensors, cotangents of auxiliary losses.
#ifndef ROTA_LOWERING_EXECUTABLE_CONSTANTTABLES_H
#define ROTA_LOWERING_EXECUTABLE_CONSTANTTABLES_H

#include "lowering/executable/Collectives.h"
#include "lowering/memory/Layout.h"

namespace rota::lowering {

/// Bytes of a tensor in memory, with those between its rows.
int64_t tensorBytes(mlir::Type type);

/// The block of constants that all tasks share: each table and each offset of a
/// part and constant tensor once, and the cotangents of all auxiliary losses
/// where one is used.
class ConstantTables {
public:
  explicit ConstantTables(std::vector<AuxiliaryLoss> losses)
      : losses(std::move(losses)) {}
  /// The offset of the table that `op` makes.
  int64_t add(mlir::rota::RotaryTableOp op);
  int64_t add(RotaryTable table);
  /// The offset of the offset that `op` is.
  int64_t add(mlir::rota::ShardOffsetOp op, const ProgramMesh &mesh);
  int64_t add(ShardOffset added);
  /// The offset of the cotangent that `op` is.
  int64_t add(mlir::rota::AuxiliaryCotangentOp op);
  /// The offset of the first of all cotangents.
  int64_t addCotangents();
  /// The offset of a constant tensor.
  int64_t add(mlir::DenseElementsAttr data);
  int64_t add(ConstantTensor added);
  const std::vector<RotaryTable> &tables() const { return list; }
  const std::vector<ShardOffset> &shardOffsets() const { return offsets; }
  const std::vector<ConstantTensor> &constantTensors() const {
    return constants;
  }
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
  std::vector<ConstantTensor> constants;
  memory::Packer packer;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_CONSTANTTABLES_H
