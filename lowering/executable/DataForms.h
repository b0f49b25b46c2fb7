// SPDX-License-Identifier: Apache-2.0
//
// Forms and bounds of a model's inputs and targets.
#ifndef ROTA_LOWERING_EXECUTABLE_DATAFORMS_H
#define ROTA_LOWERING_EXECUTABLE_DATAFORMS_H

#include "ir/rota/model/Model.h"
#include "lowering/executable/Mesh.h"

namespace rota::lowering {

/// Sets the program's inputs, targets, logits and their bounds. Input tokens
/// are bounded by every table that they index, targets by the columns of the
/// cross-entropy and by such tables, as far as they get there unchanged;
/// numbers computed from them are checked where they index alone. Fails with an
/// error at the loss when its targets are of a form that no data has.
llvm::LogicalResult describeData(const mlir::rota::Model &model,
                                 const ProgramMesh &mesh, Program &program);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_DATAFORMS_H
