// SPDX-License-Identifier: Apache-2.0
//
// Actions that are added between the compute actions of a row.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// For each compute action of a row the actions to insert before it, and last
/// the actions to insert behind all of them.
using Insertions = std::vector<std::vector<Action>>;

/// F, B, I and W of a row.
std::vector<Action> computeOf(const std::vector<Action> &row);

/// `row` with `insertions`. They stand right behind the previous compute action
/// and its sends, since a message should leave first.
std::vector<Action> insertActions(const std::vector<Action> &row,
                                  const Insertions &insertions);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
