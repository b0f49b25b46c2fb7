// SPDX-License-Identifier: Apache-2.0
//
// Messages and collectives between ranks on this host's cores. Compiled with
// exceptions.
#include "runtime/collective/local/LocalNetwork.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Messages.h"
#include "tools/measure/WorkMemory.h"

#include <algorithm>

namespace rota {

static constexpr int kMostRanks = 8;
static constexpr int64_t kPartBytes = int64_t(8) << 20;

void measureMessages(mlir::rota::Machine &machine, HostRounds &work,
                     double seconds) {
  int count = std::clamp(work.cores, 2, kMostRanks);
  LocalNetwork network(count);
  std::vector<MessageRank> ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back(
        {std::make_unique<WorkMemory>(kPartBytes),
         std::make_unique<WorkMemory>(kPartBytes * count), [&network, rank] {
           return std::shared_ptr<Communicator>(std::shared_ptr<Communicator>(),
                                                &network.at(rank));
         }});
  MessageRates own = timeMessages(std::move(ranks), seconds);
  double rate = 1 / work.times.add("message", 1 / own.bytesPerSecond);
  double latency = work.times.add("message latency", own.latency);
  machine.network = {{"memory of the host", 0, rate, latency, 1, 1}};
  machine.hostBytesPerSecond = rate;
  machine.hostLatency = latency;
}

} // namespace rota
