// SPDX-License-Identifier: Apache-2.0
//
// Actions that are added between the compute actions of a row.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// For each compute action of a row, what is to stand before it, and last what
/// is to stand behind all of them.
using Insertions = std::vector<std::vector<Action>>;

/// F, B, I and W of a row.
std::vector<Action> computeOf(const std::vector<Action> &row);

/// `row` with `insertions`. What stands before a compute action comes right
/// behind the one before it and what that sends, which should leave first.
std::vector<Action> insertActions(const std::vector<Action> &row,
                                  const Insertions &insertions);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_INSERTIONS_H
