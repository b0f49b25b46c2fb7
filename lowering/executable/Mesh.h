// SPDX-License-Identifier: Apache-2.0
//
// From axes and parts of axes, which shardings name, to the axes of the
// program's mesh.
#ifndef ROTA_LOWERING_EXECUTABLE_MESH_H
#define ROTA_LOWERING_EXECUTABLE_MESH_H

#include "ir/rota/Rota.h"
#include "runtime/program/Program.h"

namespace rota::lowering {

/// A module's mesh as its program has it. An axis of which some attribute names
/// a part stands there in pieces, so that everything consists of whole axes:
/// `tensor` of size 4 as `tensor:(1)2` and `tensor:(2)2`. Axes of size 1 are
/// left out but for `stage`.
class ProgramMesh {
public:
  /// Of the mesh in `module`; without one there are no axes. Fails with an
  /// error at the mesh when two parts of an axis cut it in ways that do not fit
  /// together, or something names a part of `stage`.
  static llvm::FailureOr<ProgramMesh> get(mlir::ModuleOp module);

  const std::vector<MeshAxis> &axes() const { return list; }

  /// The program's axes that `refs` mean, in their order.
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
