// SPDX-License-Identifier: Apache-2.0
//
// Adds to a timeline what ranks that hold the same parameters exchange for
// their updates, which otherwise stands at the step's end.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_UPDATEEXCHANGE_H
#define ROTA_PASSES_PIPELINE_TIMELINE_UPDATEEXCHANGE_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

struct ExchangeRequest {
  int rounds = 0;         // SUM_GRADs of a chunk, each after the one before
  bool refreshes = false; // whether updated weights are gathered
};

/// Adds REFRESH of each chunk at the begin of its rank's row, in the order of
/// first uses, and its SUM_GRADs when its gradient is whole: the first one
/// after its last B or W. What must be complete before a SUM_GRAD starts
/// (REDUCE_GRAD, the SUM_GRAD before) gets the time until the next chunk's
/// gradient is whole, so that the rank does not wait for it there:
///
///   1B3 1REDUCE_GRAD        0B0 .. 0B3 0REDUCE_GRAD 1SUM_GRAD 0SUM_GRAD
///
/// A SUM_GRAD stands right before the next compute action, after what the row
/// has there. Kinds that the timeline has are kept as they are. The unpipelined
/// chunk gets none, since several stages hold terms of its gradients and copies
/// of its weights; and with one chunk there is no work beside them.
Timeline exchangeUpdates(const Timeline &timeline, ExchangeRequest request);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_UPDATEEXCHANGE_H
