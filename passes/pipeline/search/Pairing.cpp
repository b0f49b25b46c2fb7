// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/search/Pairing.h"

namespace rota::pipe {

static bool areInOrder(const Action &first, PairOrder order) {
  switch (order) {
  case PairOrder::ForwardFirst:
    return first.kind == ActionKind::Forward;
  case PairOrder::BackwardFirst:
    return first.kind != ActionKind::Forward;
  case PairOrder::Any:
    break;
  }
  return true;
}

Timeline withPairs(Timeline timeline, PairOrder order) {
  dropPairs(timeline);
  for (std::vector<Action> &row : timeline.ranks)
    for (size_t i = 0; i + 1 < row.size(); ++i)
      row[i].startsPair = !endsPair(row, i) &&
                          canPair(row[i].kind, row[i + 1].kind) &&
                          row[i].microbatch != row[i + 1].microbatch &&
                          areInOrder(row[i], order);
  return timeline;
}

} // namespace rota::pipe
