// SPDX-License-Identifier: Apache-2.0
//
// The program's mesh, and the numbers of its axes for the axes and parts of
// axes in shardings.
#ifndef ROTA_LOWERING_EXECUTABLE_MESH_H
#define ROTA_LOWERING_EXECUTABLE_MESH_H

#include "ir/rota/Rota.h"
#include "runtime/program/Program.h"

namespace rota::lowering {

/// The mesh of a module's program. An axis of which an attribute names a part
/// is several axes of the program, so that all divisions are by whole axes:
/// `tensor` of size 4 becomes `tensor:(1)2` and `tensor:(2)2`. Axes of size 1
/// are left out, except `stage`.
class ProgramMesh {
public:
  /// The mesh of `module`; no axes when it has none. Fails with an error at the
  /// mesh when parts of an axis overlap without one containing the other, or
  /// when an attribute names a part of `stage`.
  static llvm::FailureOr<ProgramMesh> get(mlir::ModuleOp module);

  const std::vector<MeshAxis> &axes() const { return list; }

  /// The numbers of the program's axes for `refs`, in their order.
  std::vector<int> axesOf(llvm::ArrayRef<mlir::rota::AxisRefAttr> refs) const;
  std::vector<int> axesOf(mlir::ArrayAttr refs) const;
  Division divisionOf(mlir::rota::ShardingAttr sharding) const;

private:
  /// A piece of an axis: an entry of `list`, and the product of the sizes of
  /// the axis's pieces in front of it.
  struct Piece {
    mlir::rota::MeshAxis axis;
    int64_t before;
    int number;
  };

  void addPiece(mlir::rota::MeshAxis axis, llvm::StringRef name, int64_t before,
                int64_t size, bool whole);

  std::vector<MeshAxis> list;
  llvm::SmallVector<Piece> pieces; // in the order of `list`
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_MESH_H
