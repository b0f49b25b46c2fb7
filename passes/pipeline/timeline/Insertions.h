// SPDX-License-Identifier: Apache-2.0
//
// Actions that are added between the compute actions of a row.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// For each compute action of a row the actions to insert before it, and last
/// the actions to insert after all of them.
using Insertions = std::vector<std::vector<Action>>;

/// The first and the last of the compute actions that run at once with `use`:
/// the halves of its pair, or itself.
inline int firstAtOnce(const std::vector<Action> &uses, int use) {
  return use - endsPair(uses, use);
}
inline int lastAtOnce(const std::vector<Action> &uses, int use) {
  return use + uses[use].startsPair;
}

/// F, B, I and W of a row.
std::vector<Action> computeOf(const std::vector<Action> &row);

/// A chunk whose gradient is whole after the use number `last` of its rank.
struct WholeGradient {
  int chunk, last;
};

/// The chunks of a rank in the order in which their gradients become whole.
std::vector<WholeGradient> wholeGradients(const std::vector<Action> &uses,
                                          const Shape &shape);

/// `row` with `insertions`, of which none is between the halves of a pair. They
/// stand right after the previous compute action
/// and its sends, since a message should leave first.
std::vector<Action> insertActions(const std::vector<Action> &row,
                                  const Insertions &insertions);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
