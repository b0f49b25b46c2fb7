// SPDX-License-Identifier: Apache-2.0
//
// What options mean together.
#ifndef ROTA_TOOLS_ROTA_OPTIONCHECKS_H
#define ROTA_TOOLS_ROTA_OPTIONCHECKS_H

#include "tools/rota/Options.h"

namespace rota {

struct OptionMistake {
  std::string option; // the name; empty: no mistake
  std::string message;
};

/// Checks what `verb` needs and what must fit together, once every option has
/// its value; fills `options.stages` from the mesh.
OptionMistake checkOptions(Verb verb, RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_OPTIONCHECKS_H
