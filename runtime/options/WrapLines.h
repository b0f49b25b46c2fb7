// SPDX-License-Identifier: Apache-2.0
//
// Help in the lines of a terminal.
#ifndef ROTA_RUNTIME_OPTIONS_WRAPLINES_H
#define ROTA_RUNTIME_OPTIONS_WRAPLINES_H

#include <string>
#include <string_view>

namespace rota {

/// `text` with its lines cut between words where they have more than `width`
/// characters; 0: none is cut. The rest of an indented line, such as that of an
/// option, begins at `column`, where its description does.
std::string wrapLines(std::string_view text, size_t width, size_t column);

} // namespace rota

#endif // ROTA_RUNTIME_OPTIONS_WRAPLINES_H
