// SPDX-License-Identifier: Apache-2.0
//
// Memory by rank and use, as stacked bars.
#ifndef ROTA_TOOLS_ROTA_REPORT_MEMORYBARS_H
#define ROTA_TOOLS_ROTA_REPORT_MEMORYBARS_H

#include "tools/rota/report/Html.h"

#include <optional>
#include <vector>

namespace rota::report {

/// The bytes of a rank. `stage` has them under "uses".
struct MemoryBar {
  std::string label;
  const Json *stage;
  std::optional<double> reached; // the highest byte that was written
};

/// A bar for each element of `stages`.
std::vector<MemoryBar> barsOfStages(const Json &stages);

/// A bar for each, with its uses as tips, and a legend. HTML, with a note where
/// there are too many; empty without bytes.
std::string memoryBars(std::vector<MemoryBar> bars);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_MEMORYBARS_H
