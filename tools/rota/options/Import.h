// SPDX-License-Identifier: Apache-2.0
//
// Runs of other engines as options.
#ifndef ROTA_TOOLS_ROTA_IMPORT_H
#define ROTA_TOOLS_ROTA_IMPORT_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// Sets the options that the imported run says, if there is one, where they are
/// not given, and its model. Prints notes on what has no equivalent and on what
/// is ignored.
std::optional<Ending> takeImport(const std::vector<Option> &table,
                                 RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_IMPORT_H
