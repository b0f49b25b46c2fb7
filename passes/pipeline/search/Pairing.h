// SPDX-License-Identifier: Apache-2.0
//
// Pairs for the timelines that a search finds.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_PAIRING_H
#define ROTA_PASSES_PIPELINE_SEARCH_PAIRING_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// Which of the actions that stand side by side become a pair: an F and the
/// backward after it, a backward and the next F, or both.
enum class PairOrder { ForwardFirst, BackwardFirst, Any };

/// `timeline`, of which each row has pairs from its front on: an F and a B or I
/// of two microbatches that stand side by side in that order, where the first
/// of them is not in a pair already. The result need not complete: a rank waits
/// for both halves.
Timeline withPairs(Timeline timeline, PairOrder order);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_PAIRING_H
