// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page that are about the whole run: summary, memory,
// transfers. HTML; empty where the folder has nothing about them.
#ifndef ROTA_TOOLS_ROTA_REPORT_TABLES_H
#define ROTA_TOOLS_ROTA_REPORT_TABLES_H

#include "tools/rota/report/RunFolder.h"

namespace rota::report {

/// The numbers of the run, those that are known.
std::string summarySection(const RunFolder &folder);
/// A bar for each rank: the planned bytes by use, and the highest byte that was
/// written.
std::string memorySection(const RunFolder &folder);
/// Messages and transfers by kind, the most exposed first.
std::string transferSection(const RunFolder &folder);
/// The options of the run.
std::string optionSection(const RunFolder &folder);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_TABLES_H
