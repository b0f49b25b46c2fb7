// SPDX-License-Identifier: Apache-2.0
//
// See Table.h.
#include "passes/pipeline/drawing/Table.h"

#include <algorithm>
#include <cstdio>

namespace rota::pipe {

std::string numberCell(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", value);
  return buffer;
}

std::string percentCell(double share) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.1f %%", 100 * share);
  return buffer;
}

std::string alignedTable(const std::vector<std::vector<std::string>> &table) {
  std::vector<size_t> widths(table[0].size());
  for (const std::vector<std::string> &row : table)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const std::vector<std::string> &row : table) {
    for (size_t i = 0; i < row.size(); ++i)
      text += (i ? "  " : "") + std::string(widths[i] - row[i].size(), ' ') +
              row[i];
    text += '\n';
  }
  return text;
}

} // namespace rota::pipe
