// SPDX-License-Identifier: Apache-2.0
//
// Ranks that measure their messages. How long they take is not tested.
#include "tools/measure/Messages.h"
#include "runtime/collective/local/LocalNetwork.h"
#include "tools/measure/WorkMemory.h"

#include <atomic>
#include <gtest/gtest.h>

using namespace rota;

namespace {

std::vector<MessageRank> makeRanks(LocalNetwork &network, int count) {
  std::vector<MessageRank> ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back(
        {std::make_unique<WorkMemory>(4096),
         std::make_unique<WorkMemory>(4096 * count), [&network, rank] {
           return std::shared_ptr<Communicator>(std::shared_ptr<Communicator>(),
                                                &network.at(rank));
         }});
  return ranks;
}

TEST(Messages, HaveTimes) {
  LocalNetwork network(3);
  std::vector<MessageRank> ranks = makeRanks(network, 3);
  std::atomic<int> waits = 0;
  for (MessageRank &rank : ranks)
    rank.finish = [&] { ++waits; };
  MessageRates times = timeMessages(std::move(ranks), 0);
  EXPECT_GT(times.bytesPerSecond, 0);
  EXPECT_GT(times.latency, 0);
  EXPECT_EQ(waits, 6 * 5 * 3); // transfers, samples, ranks
}

TEST(Messages, EndWithTheFailureOfARank) {
  LocalNetwork network(2);
  std::vector<MessageRank> ranks = makeRanks(network, 2);
  ranks[1].connect = []() -> std::shared_ptr<Communicator> {
    throw RunError("no way to rank 1");
  };
  try {
    timeMessages(std::move(ranks), 0);
    FAIL() << "nothing was thrown";
  } catch (const RunError &error) {
    EXPECT_NE(std::string(error.what()).find("no way to rank 1"),
              std::string::npos);
  }
}

} // namespace
