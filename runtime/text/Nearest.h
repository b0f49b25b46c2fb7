// SPDX-License-Identifier: Apache-2.0
//
// What a misspelled name was meant to be.
#ifndef ROTA_RUNTIME_TEXT_NEAREST_H
#define ROTA_RUNTIME_TEXT_NEAREST_H

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Insertions, removals and replacements of a letter that turn a into b.
inline size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

/// The one of `names` that is spelled most like `name`. Empty when none is
/// near: two letters may be wrong, or a third of them.
template <typename Names>
std::string_view nearestName(std::string_view name, const Names &names) {
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  std::string_view nearest;
  for (const auto &candidate : names)
    if (size_t distance = editDistance(name, std::string_view(candidate));
        distance < least) {
      least = distance;
      nearest = std::string_view(candidate);
    }
  return nearest;
}

/// "; did you mean 'X'?"; empty without a name.
inline std::string didYouMean(std::string_view name) {
  return name.empty() ? "" : "; did you mean '" + std::string(name) + "'?";
}

} // namespace rota

#endif // ROTA_RUNTIME_TEXT_NEAREST_H
