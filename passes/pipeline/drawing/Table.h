// SPDX-License-Identifier: Apache-2.0
//
// Tables as text.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_TABLE_H
#define ROTA_PASSES_PIPELINE_DRAWING_TABLE_H

#include <string>
#include <vector>

namespace rota::pipe {

/// At most six digits.
std::string numberCell(double value);

/// "27.3 %" of 0.2727.
std::string percentCell(double share);

/// A line for each row, columns two spaces apart and aligned to the right. The
/// first row has every column; others may end earlier.
std::string alignedTable(const std::vector<std::vector<std::string>> &table);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_DRAWING_TABLE_H
