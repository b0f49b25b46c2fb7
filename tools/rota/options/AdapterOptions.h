// SPDX-License-Identifier: Apache-2.0
//
// The options of low-rank adapters, given or in a folder as PEFT writes it.
#ifndef ROTA_TOOLS_ROTA_ADAPTEROPTIONS_H
#define ROTA_TOOLS_ROTA_ADAPTEROPTIONS_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// The rows of what the model's builder makes of adapters.
std::vector<Option> adapterRows(RunOptions &options, unsigned commands);

/// Completes rank, alpha and targets by the folder of `adapter`, then by
/// defaults. An option that was given and that the folder contradicts is a
/// mistake, as is a kind of adapter that Rota does not compute.
OptionMistake completeAdapter(RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_ADAPTEROPTIONS_H
