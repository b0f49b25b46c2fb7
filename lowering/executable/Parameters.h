// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a model as the program describes them, and the blocks in
// which tasks find them.
#ifndef ROTA_LOWERING_EXECUTABLE_PARAMETERS_H
#define ROTA_LOWERING_EXECUTABLE_PARAMETERS_H

#include "ir/rota/Model.h"
#include "lowering/executable/Buffers.h"

namespace rota::lowering {

/// Places of one function's parameters, for assignBuffers.
using ParamPlaces = decltype(FunctionPlaces::params);

/// Fills in the parameters of `layout.program`, the blocks of every layer kind
/// and of both ends, and for each kind, embed and loss (in that order) where
/// their parameters are. Layer kinds' blocks hold their parameters in order. A
/// parameter is computed in the type in which functions read it; reading one in
/// two types, or a parameter that nothing uses, is an error.
llvm::FailureOr<std::vector<ParamPlaces>>
layOutParameters(const mlir::rota::Model &model, memory::Layout &layout);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_PARAMETERS_H
