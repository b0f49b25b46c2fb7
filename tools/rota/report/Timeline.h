// SPDX-License-Identifier: Apache-2.0
//
// One step of the run, real beside planned.
#ifndef ROTA_TOOLS_ROTA_REPORT_TIMELINE_H
#define ROTA_TOOLS_ROTA_REPORT_TIMELINE_H

#include "tools/rota/report/RunFolder.h"

namespace rota::report {

/// The last training step in the folder's trace, a row for each rank with its
/// planned times below; or, without a trace, the planned times of run.json.
/// HTML; empty where neither is there.
std::string timelineSection(const RunFolder &folder);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_TIMELINE_H
