// SPDX-License-Identifier: Apache-2.0
//
// See Offloading.h.
#include "passes/pipeline/timeline/Offloading.h"

#include "passes/pipeline/timeline/Insertions.h"

#include <algorithm>

namespace rota::pipe {

Timeline offloadResiduals(const Timeline &timeline,
                          const std::vector<bool> &chunks, int prefetch) {
  const Shape &shape = timeline.shape;
  Timeline result = timeline;
  for (std::vector<Action> &row : result.ranks) {
    std::vector<Action> uses = computeOf(row);
    Insertions insertions(uses.size() + 1);
    // The number of each F among the uses.
    std::vector<int> forwards(size_t(shape.rows() + 1) * shape.microbatches);
    for (int i = 0; i < int(uses.size()); ++i) {
      int chunk = uses[i].chunk, m = uses[i].microbatch;
      ActionKind kind = uses[i].kind;
      int &forward =
          forwards[size_t(shape.rowOf(chunk)) * shape.microbatches + m];
      if (kind == ActionKind::Forward)
        forward = i;
      int offload = lastAtOnce(uses, forward) + 1;
      int fetch = firstAtOnce(uses, i) - prefetch;
      if (kind == ActionKind::Forward || kind == ActionKind::BackwardWeight ||
          !chunks[chunk] || fetch <= offload)
        continue;
      fetch = firstAtOnce(uses, fetch);
      if (fetch <= offload)
        continue;
      insertions[offload].push_back({chunk, ActionKind::Offload, m});
      insertions[fetch].push_back({chunk, ActionKind::Fetch, m});
    }
    // OFFLOAD frees memory, so it comes before a FETCH at the same position.
    for (std::vector<Action> &actions : insertions)
      std::stable_partition(actions.begin(), actions.end(),
                            [](const Action &action) {
                              return action.kind == ActionKind::Offload;
                            });
    row = insertActions(row, insertions);
  }
  return result;
}

} // namespace rota::pipe
