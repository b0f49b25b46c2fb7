// SPDX-License-Identifier: Apache-2.0
//
// The options that describe a machine and a whole run on it.
#ifndef ROTA_TOOLS_ROTA_MACHINEOPTIONS_H
#define ROTA_TOOLS_ROTA_MACHINEOPTIONS_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// Finds the machine, and the ranks of its nodes.
OptionMistake readMachine(RunOptions &options);

/// Checks what is asked about a whole run.
OptionMistake checkCampaign(const CampaignRequest &run);

/// Sets the bound of the machine's memory, if it says one: all of a device's,
/// or a rank's part of a host's. The mesh has been checked.
void boundByMachine(RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_MACHINEOPTIONS_H
