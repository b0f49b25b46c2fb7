// SPDX-License-Identifier: Apache-2.0
//
// The program's description of a model's parameters, and the blocks from which
// tasks read them.
#ifndef ROTA_LOWERING_EXECUTABLE_PARAMETERS_H
#define ROTA_LOWERING_EXECUTABLE_PARAMETERS_H

#include "ir/rota/model/Model.h"
#include "lowering/executable/Buffers.h"
#include "lowering/executable/Collectives.h"

namespace rota::lowering {

/// Places of one function's parameters, for assignBuffers.
using ParamOffsetMap = decltype(FunctionAddresses::params);

/// Fills in the parameters of `layout.program`, the blocks of every layer kind
/// and of both ends, and for each kind, embed and loss (in that order) where
/// their parameters are. Layer kinds' blocks hold their parameters in order. A
/// parameter is computed in the type in which functions read it; reading one in
/// two types, or a parameter that nothing uses, is an error.
///
/// Divisions and collectives follow from the parameters' placements. Where the
/// storage of any parameter is divided further than functions see it, all have
/// `unshard` and `reduceGrad`, copies and additions for those that are not.
llvm::FailureOr<std::vector<ParamOffsetMap>>
layOutParameters(const mlir::rota::Model &model, CollectiveTable &collectives,
                 memory::ModelLayout &layout);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_PARAMETERS_H
