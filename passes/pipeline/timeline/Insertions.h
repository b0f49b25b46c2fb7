// SPDX-License-Identifier: Apache-2.0
//
// Actions that are added between the compute actions of a row.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// Entry i has the actions to insert before compute action i of a row; the last
/// entry has those behind all compute actions.
using Insertions = std::vector<std::vector<Action>>;

/// F, B, I and W of a row.
std::vector<Action> computeOf(const std::vector<Action> &row);

/// `row` with `insertions`. Actions before a compute action come directly
/// behind the preceding compute action and its sends, which should start first.
std::vector<Action> insertActions(const std::vector<Action> &row,
                                  const Insertions &insertions);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
