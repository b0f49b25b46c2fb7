// SPDX-License-Identifier: Apache-2.0
//
// The collectives of updates, which run in the timeline (SUM_GRAD, REFRESH) or
// at the step's end.
#ifndef ROTA_RUNTIME_TRAIN_STEP_UPDATETRANSFERS_H
#define ROTA_RUNTIME_TRAIN_STEP_UPDATETRANSFERS_H

#include "runtime/program/UpdatePlaces.h"
#include "runtime/train/rank/Rank.h"

namespace rota {

/// Starts collective number `round` of Parameter::reduce on the sum of the
/// update's gradient. In place, the result of a reduce-scatter is the part of
/// the sum that the rank has.
Request startSum(Rank &rank, Stream stream, const Update &update, int round);

/// Starts Parameter::refresh, which brings what the update left on each rank to
/// the stored copies.
Request startRefresh(Rank &rank, Stream stream, const Update &update);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_UPDATETRANSFERS_H
