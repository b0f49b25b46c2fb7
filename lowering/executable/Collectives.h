// SPDX-License-Identifier: Apache-2.0
//
// Collectives as the program describes them.
#ifndef ROTA_LOWERING_EXECUTABLE_COLLECTIVES_H
#define ROTA_LOWERING_EXECUTABLE_COLLECTIVES_H

#include "ir/rota/experts/Experts.h"
#include "lowering/executable/Mesh.h"
#include "runtime/GroupedAbi.h"

namespace rota::lowering {

ElementType elementTypeOf(mlir::Type type);

/// A tensor of this shape, of which a collective gathers or cuts dimension
/// `dim`.
void setExtents(llvm::ArrayRef<int64_t> shape, int64_t dim,
                Collective &collective);

/// The rows and counts of an op that becomes a call of rotaStartRowExchange.
RotaRowExchange rowExchangeOf(mlir::rota::RaggedAllToAllOp op);

/// A program's collectives, equal ones once.
class CollectiveTable {
public:
  CollectiveTable(const ProgramMesh &mesh, std::vector<Collective> &list)
      : programMesh(mesh), list(list) {}

  const ProgramMesh &mesh() const { return programMesh; }

  /// Its number in the program.
  int add(Collective collective);
  /// The number of an op's collective. The op becomes a call of
  /// rotaStartCollective or rotaStartRowExchange.
  int add(mlir::rota::CollectiveOpInterface op);

private:
  const ProgramMesh &programMesh;
  std::vector<Collective> &list;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_COLLECTIVES_H
