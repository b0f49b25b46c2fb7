// SPDX-License-Identifier: Apache-2.0
//
// The batch size and sequence length of a probe, from its file of tokens.
#ifndef ROTA_TOOLS_ROTA_TOKENSHAPE_H
#define ROTA_TOOLS_ROTA_TOKENSHAPE_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// Sets the batch size and the sequence length, where `options` have none, from
/// the file of tokens: `tokens` [batch, sequence + 1], or `inputs` [batch,
/// sequence, ...]. Returns false, and an `error`, when the file cannot be read,
/// has neither tensor, or disagrees with the given options.
bool readTokenShape(RunOptions &options, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_TOKENSHAPE_H
