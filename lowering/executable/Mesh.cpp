// SPDX-License-Identifier: Apache-2.0
//
// Splits axes where the module's attributes do.
#include "lowering/executable/Mesh.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

/// For each axis, the products of sizes at which parts of it that `module`
/// names begin and end.
static std::map<mlir::rota::MeshAxis, std::set<int64_t>>
cutsOf(ModuleOp module) {
  std::map<mlir::rota::MeshAxis, std::set<int64_t>> cuts;
  module.walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](AxisRefAttr ref) {
      if (!ref.isWhole())
        cuts[ref.getAxis()].insert(
            {ref.getBefore(), ref.getBefore() * ref.getSize()});
    });
  });
  return cuts;
}

FailureOr<ProgramMesh> ProgramMesh::get(ModuleOp module) {
  ProgramMesh mesh;
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return mesh;
  MeshOp op = *meshes.begin();
  auto cuts = cutsOf(module);
  for (auto [number, size] : llvm::enumerate(op.getMesh().getSizes())) {
    auto axis = static_cast<mlir::rota::MeshAxis>(number);
    bool isStage = axis == mlir::rota::MeshAxis::Stage;
    if (size == 1 && !isStage)
      continue;
    std::set<int64_t> &places = cuts[axis];
    places.insert({1, size});
    if (isStage && places.size() > 2)
      return op.emitOpError("expected whole axes 'stage', got a part of one");
    std::string name = stringifyMeshAxis(axis).str();
    SmallVector<int64_t> borders(places.begin(), places.end());
    if (size == 1)
      borders = {1, 1};
    for (auto [before, end] :
         llvm::zip(borders, ArrayRef(borders).drop_front())) {
      if (end % before != 0 || end > size)
        return op.emitOpError("expected parts of axis '")
               << name << "' of size " << size
               << " whose borders divide each other, got borders at " << before
               << " and " << end;
      mesh.addPiece(axis, name, before, end / before, end / before == size);
    }
  }
  return mesh;
}

void ProgramMesh::addPiece(mlir::rota::MeshAxis axis, StringRef name,
                           int64_t before, int64_t size, bool whole) {
  pieces.push_back({axis, before, int(list.size())});
  std::string part = "(" + std::to_string(before) + ")" + std::to_string(size);
  list.push_back({whole ? name.str() : name.str() + ":" + part, size});
}

std::vector<int> ProgramMesh::axesOf(ArrayRef<AxisRefAttr> refs) const {
  std::vector<int> numbers;
  for (AxisRefAttr ref : refs)
    for (const Piece &piece : pieces) {
      int64_t end = ref.getBefore() * ref.getSize();
      bool inside = ref.isWhole() ||
                    (piece.before >= ref.getBefore() && piece.before < end);
      if (piece.axis == ref.getAxis() && inside && list[piece.number].size > 1)
        numbers.push_back(piece.number);
    }
  return numbers;
}

std::vector<int> ProgramMesh::axesOf(ArrayAttr refs) const {
  return axesOf(llvm::to_vector(refs.getAsRange<AxisRefAttr>()));
}

Division ProgramMesh::divisionOf(ShardingAttr sharding) const {
  Division division;
  for (DimensionShardingAttr dimension : sharding.getDimensions())
    division.push_back(axesOf(dimension.getAxes()));
  return division;
}

} // namespace rota::lowering
