// SPDX-License-Identifier: Apache-2.0
//
// Divisions of a parameter, and the collectives between them, from its
// placement.
#ifndef ROTA_LOWERING_EXECUTABLE_PARAMETERDIVISIONS_H
#define ROTA_LOWERING_EXECUTABLE_PARAMETERDIVISIONS_H

#include "lowering/executable/Collectives.h"

namespace rota::lowering {

/// Fills in shape, divisions and collectives of `parameter`, whose name and
/// types are set, from `param`. With `windows`, functions see gathered
/// copies and add to gradients that are reduced later, so `unshard` and
/// `reduceGrad` are there even where storage is not divided further. Fails with
/// an error at `param` when functions do not see parts or the gradient's axes
/// do not fit.
llvm::LogicalResult setDivisions(mlir::rota::ParamOp param, bool windows,
                                 CollectiveTable &collectives,
                                 Parameter &parameter);

/// Whether `param`'s storage is divided further than functions see it.
bool isStoredInParts(mlir::rota::ParamOp param, const ProgramMesh &mesh);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_PARAMETERDIVISIONS_H
