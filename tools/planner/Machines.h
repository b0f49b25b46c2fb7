// SPDX-License-Identifier: Apache-2.0
//
// The machines that plans are for: those that come with rota, and files.
#ifndef ROTA_TOOLS_PLANNER_MACHINES_H
#define ROTA_TOOLS_PLANNER_MACHINES_H

#include "ir/rota/cost/Machine.h"

namespace rota {

/// The name of the machine that is assumed where none is named.
inline constexpr const char *kGenericMachine = "generic";

/// The names of the machines that come with rota, `generic` last.
std::vector<std::string> machineNames();

struct FoundMachine {
  mlir::rota::Machine machine;
  std::string text; // the file as it is written
};

/// The machine of that name, or of that file. Nothing where there is none or
/// the file is wrong, with the place, the value and the rule in `error`.
std::optional<FoundMachine> findMachine(llvm::StringRef nameOrFile,
                                        std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_MACHINES_H
