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
/// Counted in unit slots: a SEND stands where its message leaves (at once, or
/// one action later with a delay of 2), and a RECV is the last thing its rank
/// does before the producer finishes. A place is thus posted when its message
/// is ready and never much before: senders keep nothing for longer than an
/// action, values that wait do so at their reader, and a unit-cost run takes
/// exactly as long as without communication.
Timeline addCommunication(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H
