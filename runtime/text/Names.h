// SPDX-License-Identifier: Apache-2.0
//
// Names of closed sets: one list for each enum, which options, messages and
// help ask for.
#ifndef ROTA_RUNTIME_TEXT_NAMES_H
#define ROTA_RUNTIME_TEXT_NAMES_H

namespace rota {

/// Specialized beside each enum whose values count from 0: `list` holds the
/// names in the order of the values.
template <typename Enum> struct Names;

template <typename Enum> constexpr const char *nameOf(Enum value) {
  return Names<Enum>::list[static_cast<int>(value)];
}

} // namespace rota

#endif // ROTA_RUNTIME_TEXT_NAMES_H
