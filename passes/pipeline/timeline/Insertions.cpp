// SPDX-License-Identifier: Apache-2.0
//
// See Insertions.h.
#include "passes/pipeline/timeline/Insertions.h"

#include <algorithm>
#include <iterator>

namespace rota::pipe {

std::vector<Action> computeOf(const std::vector<Action> &row) {
  std::vector<Action> uses;
  std::copy_if(row.begin(), row.end(), std::back_inserter(uses),
               [](const Action &action) { return isCompute(action.kind); });
  return uses;
}

std::vector<WholeGradient> wholeGradients(const std::vector<Action> &uses,
                                          const Shape &shape) {
  std::vector<WholeGradient> found;
  std::vector<bool> isFound(shape.chunks());
  for (int i = int(uses.size()) - 1; i >= 0; --i)
    if (makesGradient(uses[i].kind) && !isFound[uses[i].chunk]) {
      isFound[uses[i].chunk] = true;
      found.push_back({uses[i].chunk, lastAtOnce(uses, i)});
    }
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<Action> insertActions(const std::vector<Action> &row,
                                  const Insertions &insertions) {
  std::vector<Action> out = insertions[0];
  size_t computed = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    out.push_back(row[i]);
    if (!isCompute(row[i].kind))
      continue;
    while (i + 1 < row.size() && isSend(row[i + 1].kind))
      out.push_back(row[++i]);
    const std::vector<Action> &next = insertions[++computed];
    out.insert(out.end(), next.begin(), next.end());
  }
  return out;
}

} // namespace rota::pipe
