// SPDX-License-Identifier: Apache-2.0
//
// Adds the sends and receives that a timeline of compute actions needs.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H
#define ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// Adds a SEND and a RECV for each value that crosses ranks. `timeline` has
/// none yet, and completes.
///
/// By `costs`, or in unit slots by default and with a delay of 2, a SEND stands
/// right after the action that makes its message, or its pair, or with that
/// delay one action later. A RECV is the last action that its rank starts
/// before the producer ends. A place is posted when its message is ready and
/// not much earlier: a sender keeps a message for one action at most, and a
/// message waits on the rank that reads it. With unit costs, communication does
/// not change the makespan. With a latency of messages and costs that leave it
/// out, a rank that is busy when a message is ready may post its place an
/// action late, and wait for the message that it would have had.
Timeline addCommunication(const Timeline &timeline,
                          const CostTable &costs = CostTable());

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_COMMUNICATION_H
