// SPDX-License-Identifier: Apache-2.0
//
// Adds the sends and receives that a timeline of compute actions needs.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H
#define ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// Adds a SEND and a RECV for each value that crosses ranks. `timeline` has
/// none yet, and completes.
///
/// Counted in unit slots, a SEND stands right behind the action that makes its
/// message, or its pair, or one action later with a delay of 2. A RECV is the
/// last action that its rank starts before the producer ends. A place is posted
/// when its message is ready and not much earlier: a sender keeps a message for
/// one action at most, and a message waits on the rank that reads it. With unit
/// costs, communication does not change the makespan.
Timeline addCommunication(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H
