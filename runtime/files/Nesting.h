// SPDX-License-Identifier: Apache-2.0
//
// A limit on brackets in texts that are not trusted. Parsers and printers of
// JSON and of MLIR call themselves for each level, and a stack has an end.
#ifndef ROTA_RUNTIME_FILES_NESTING_H
#define ROTA_RUNTIME_FILES_NESTING_H

#include <cstddef>
#include <string>
#include <string_view>

namespace rota {

/// Levels of brackets that a text may have.
inline constexpr int kMostNesting = 256;

/// The byte of the bracket that is one level too deep in a text of JSON or
/// MLIR; std::string_view::npos: none is.
size_t findTooDeep(std::string_view text);

/// An error's message about such a bracket; empty: there is none. Called before
/// the text is parsed.
std::string nestingMistake(std::string_view text);

} // namespace rota

#endif // ROTA_RUNTIME_FILES_NESTING_H
