// SPDX-License-Identifier: Apache-2.0
//
// The engines that a run is written for and not read from.
#ifndef ROTA_TOOLS_PLANNER_ENGINES_EXPORT_H
#define ROTA_TOOLS_PLANNER_ENGINES_EXPORT_H

#include "tools/planner/engines/EngineRun.h"

namespace rota::engines {

std::optional<EngineExport> exportMaxText(const EngineRun &run,
                                          std::string &error);
/// A mesh for init_device_mesh and a schedule for torch.distributed.pipelining.
std::optional<EngineExport> exportTorch(const EngineRun &run,
                                        std::string &error);

} // namespace rota::engines

#endif // ROTA_TOOLS_PLANNER_ENGINES_EXPORT_H
