// SPDX-License-Identifier: Apache-2.0
//
// Texts and axes of pictures in SVG and of pages in HTML.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_MARKUP_H
#define ROTA_PASSES_PIPELINE_DRAWING_MARKUP_H

#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// The text with the special characters of XML and HTML replaced.
std::string escaped(std::string_view text);

/// At most `count` + 1 ascending round numbers from `low` to `high`: 1, 2 or 5
/// times a power of ten apart. `low` alone where the two differ by less than
/// numbers of their size can resolve.
std::vector<double> roundTicks(double low, double high, int count);

} // namespace rota

#endif // ROTA_PASSES_PIPELINE_DRAWING_MARKUP_H
