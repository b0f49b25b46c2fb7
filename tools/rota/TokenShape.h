// SPDX-License-Identifier: Apache-2.0
//
// What a probe's tokens say about its shapes.
#ifndef ROTA_TOOLS_ROTA_TOKENSHAPE_H
#define ROTA_TOOLS_ROTA_TOKENSHAPE_H

#include "tools/rota/Options.h"

namespace rota {

/// Sets the batch size and sequence length that `options` leave open from the
/// file of tokens: `tokens` [batch, sequence + 1], or `inputs` [batch,
/// sequence,
/// ...]. Returns false, and says why, when the file cannot be read, has
/// neither, or disagrees with what is given.
bool readTokenShape(RunOptions &options, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_TOKENSHAPE_H
