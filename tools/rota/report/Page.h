// SPDX-License-Identifier: Apache-2.0
//
// A run as one HTML page that needs no other file and no network.
#ifndef ROTA_TOOLS_ROTA_REPORT_PAGE_H
#define ROTA_TOOLS_ROTA_REPORT_PAGE_H

#include "tools/rota/report/RunFolder.h"

namespace rota::report {

std::string makePage(const RunFolder &folder);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_PAGE_H
