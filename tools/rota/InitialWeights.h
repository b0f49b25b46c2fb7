// SPDX-License-Identifier: Apache-2.0
//
// The weights that a run begins with.
#ifndef ROTA_TOOLS_ROTA_INITIALWEIGHTS_H
#define ROTA_TOOLS_ROTA_INITIALWEIGHTS_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// Sets `options.weights` to those beside the model, unless the options name
/// others. Returns false, and prints an error, where these are in a format that
/// nothing reads, and where `verb` is an evaluation that has none.
bool findInitialWeights(Command verb, const mlir::rota::BuiltModel &model,
                        RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_INITIALWEIGHTS_H
