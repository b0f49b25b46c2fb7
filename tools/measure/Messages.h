// SPDX-License-Identifier: Apache-2.0
//
// Messages and collectives between ranks that are threads of this process.
#ifndef ROTA_TOOLS_MEASURE_MESSAGES_H
#define ROTA_TOOLS_MEASURE_MESSAGES_H

#include "runtime/collective/Communicator.h"
#include "runtime/device/Device.h"

namespace rota {

/// What a rank measures with. The thread of the rank calls the functions.
struct MessageRank {
  /// Memory for a part of a tensor, and for the whole of all ranks' parts.
  std::unique_ptr<Arena> part, whole;
  std::function<std::shared_ptr<Communicator>()> connect;
  /// Waits until all transfers are done. Null: Communicator::wait waits.
  std::function<void()> finish = nullptr;
};

struct MessageRates {
  double bytesPerSecond = 0; // that a rank sends, while it receives as many
  double latency = 0;        // seconds of a step of a collective, or a message
};

/// Times of all-gathers, reduce-scatters and messages around a ring of at least
/// two ranks, with parts as large as their memory and small ones, in some
/// `seconds`. Throws RunError with the first failure of a rank.
MessageRates timeMessages(std::vector<MessageRank> ranks, double seconds);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_MESSAGES_H
