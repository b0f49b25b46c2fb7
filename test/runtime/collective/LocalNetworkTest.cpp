// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/collective/local/Rendezvous.h"
#include "runtime/threads/Turn.h"
#include "test/runtime/collective/CommunicatorChecks.h"
#include "test/runtime/collective/RandomCollective.h"
#include "test/runtime/collective/RandomRows.h"

#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace rota;
using namespace rota::test;

namespace {

/// Runs `body` as each rank of a network, each in its own thread.
void onEachRank(int ranks, const std::function<void(Communicator &)> &body) {
  LocalNetwork network(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { body(network.at(rank)); });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

TEST(LocalNetwork, EveryCollectiveGivesTheReference) {
  for (int ranks : {1, 2, 3, 4, 6, 8})
    for (uint64_t seed : {1, 2, 3})
      onEachRank(ranks, [&](Communicator &communicator) {
        exchangeRandomly(communicator, seed, 60, 200);
      });
}

TEST(LocalNetwork, LargeCollectivesGiveTheReference) {
  for (int ranks : {2, 4})
    onEachRank(ranks, [&](Communicator &communicator) {
      exchangeRandomly(communicator, 10 + ranks, 8, 300000);
    });
}

TEST(Rendezvous, SmallBlocksOfManyRanksAreClaimedTogether) {
  constexpr int kRanks = 64;
  for (int64_t elements : {int64_t(64) << 10, int64_t(64) << 17}) {
    Collective gather;
    gather.kind = Collective::Kind::AllGather;
    gather.axes = {0};
    gather.size = elements;
    RankGroup group = groupOf({{"all", kRanks}}, 0, {0});
    Rendezvous rendezvous(Exchange(Stream::Weights, gather, group));
    std::vector<float> part(elements / kRanks), whole(elements);
    for (int rank = 0; rank < kRanks; ++rank)
      rendezvous.arrive(rank, part.data(), whole.data());
    int64_t claims = 0, pieces = 0;
    while (auto claimed = rendezvous.claim(0)) {
      ++claims;
      pieces += claimed->end - claimed->begin;
    }
    EXPECT_EQ(pieces, kRanks);
    EXPECT_EQ(claims, elements * 4 >> 19 ? elements * 4 >> 19 : 1);
  }
}

TEST(LocalNetwork, FilledRowsTravelAndOthersAreCleared) {
  for (int ranks : {1, 2, 3, 4, 6, 8})
    onEachRank(ranks, [&](Communicator &communicator) {
      exchangeRowsRandomly(communicator, ranks, 60, 30);
      if (ranks <= 4)
        exchangeRowsRandomly(communicator, 100 + ranks, 5, 100000);
    });
}

TEST(LocalNetwork, CopiesRunBesideTheCaller) {
  onEachRank(1, [](Communicator &communicator) {
    std::vector<char> small(100, 1), large(3 << 20, 2);
    std::vector<char> smallCopy(small.size()), largeCopy(large.size());
    Request one =
        communicator.copy(small.data(), smallCopy.data(), small.size());
    Request two =
        communicator.copy(large.data(), largeCopy.data(), large.size());
    while (!communicator.isDone(two))
      std::this_thread::yield();
    communicator.wait(two);
    communicator.wait(one);
    EXPECT_EQ(small, smallCopy);
    EXPECT_EQ(large, largeCopy);
  });
}

// Rank 1 joins the gather only after the message that rank 0 sends behind it.
TEST(LocalNetwork, AGatherThatWaitsHoldsUpNoMessage) {
  for (int64_t size : {4, 1000000})
    onEachRank(2, [&](Communicator &communicator) {
      std::vector<float> part(size / 2, 1.0f + communicator.rank());
      std::vector<float> whole(size);
      float message = 7.0f;
      auto startGather = [&] {
        return communicator.start(Stream::Weights, gather(size),
                                  allRanks(communicator), part.data(),
                                  whole.data());
      };
      if (communicator.rank() == 0) {
        Request gathered = startGather();
        communicator.wait(
            communicator.send(Stream::Forward, 1, &message, sizeof message));
        communicator.wait(gathered);
      } else {
        float received = 0.0f;
        communicator.wait(communicator.receive(Stream::Forward, 0, &received,
                                               sizeof received));
        EXPECT_EQ(received, 7.0f);
        communicator.wait(startGather());
      }
      EXPECT_EQ(whole.front(), 1.0f);
      EXPECT_EQ(whole.back(), 2.0f);
    });
}

// Rank 0 computes, that is, it does not wait, while rank 1 does its part of a
// transfer of both.
TEST(LocalNetwork, TransfersRunWhileTheRankComputes) {
  constexpr int64_t kSize = 1 << 20;
  std::atomic<bool> hasWaited = false;
  onEachRank(2, [&](Communicator &communicator) {
    std::vector<float> part(kSize / 2, 1.0f), whole(kSize);
    Request request =
        communicator.start(Stream::Weights, gather(kSize),
                           allRanks(communicator), part.data(), whole.data());
    if (communicator.rank() == 0)
      while (!hasWaited)
        std::this_thread::yield();
    communicator.wait(request);
    hasWaited = true;
    EXPECT_EQ(std::accumulate(whole.begin(), whole.end(), 0.0), double(kSize));
  });
}

// Rank 1 never waits before rank 0 has waited, and its helper leaves transfers
// inside tasks alone.
TEST(LocalNetwork, ARankThatWaitsDoesTheOthersPieces) {
  Collective sum;
  sum.kind = Collective::Kind::AllReduce;
  sum.axes = {0};
  sum.size = 1 << 20;
  std::atomic<bool> hasWaited = false;
  onEachRank(2, [&](Communicator &communicator) {
    std::vector<float> terms(sum.size, 1.0f + communicator.rank());
    std::vector<std::vector<float>> sums(3, std::vector<float>(sum.size));
    std::vector<Request> requests;
    for (std::vector<float> &each : sums)
      requests.push_back(communicator.start(Stream::Task, sum,
                                            allRanks(communicator),
                                            terms.data(), each.data()));
    if (communicator.rank() == 1)
      while (!hasWaited)
        std::this_thread::yield();
    for (Request request : requests)
      communicator.wait(request);
    hasWaited = true;
    for (const std::vector<float> &each : sums)
      EXPECT_EQ(each, std::vector<float>(sum.size, 3.0f));
  });
}

// The second of two sums into one buffer begins when the first has ended,
// although a rank's two threads could work on both.
TEST(LocalNetwork, SumsOfOneSequenceFollowEachOther) {
  constexpr int kSums = 50;
  Collective scatter = addParts(1 << 18);
  onEachRank(2, [&](Communicator &communicator) {
    std::vector<float> whole(scatter.size, 1.0f), part(scatter.size / 2);
    std::vector<Request> requests;
    for (int i = 0; i < kSums; ++i)
      requests.push_back(communicator.start(Stream::Gradients, scatter,
                                            allRanks(communicator),
                                            whole.data(), part.data()));
    communicator.wait(requests.back());
    EXPECT_EQ(part, std::vector<float>(part.size(), 2.0f * kSums));
    for (Request request : requests)
      EXPECT_TRUE(communicator.isDone(request));
  });
}

namespace {

/// A turn that comes when the test says so.
struct TestTurn : Turn {
  void ask(Semaphore &wake) override { asked = &wake; }
  bool hasCome() override { return isCome; }
  void withdraw() override { isWithdrawn = true; }
  void come() {
    isCome = true;
    asked.load()->give();
  }

  std::atomic<Semaphore *> asked{nullptr};
  std::atomic<bool> isCome = false, isWithdrawn = false;
};

/// Rank 1 sends until rank 0 sleeps before a message comes; rank 1 then decides
/// what happens.
void sendUntilAsked(Communicator &communicator, TestTurn &turn,
                    const std::function<void(Request)> &receive,
                    const std::function<void()> &decide) {
  float value = 1.0f;
  while (!turn.asked)
    if (communicator.rank() == 0) {
      receive(communicator.receive(Stream::Forward, 1, &value, sizeof value));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      communicator.wait(
          communicator.send(Stream::Forward, 0, &value, sizeof value));
    }
  if (communicator.rank() == 1)
    decide();
}

} // namespace

TEST(LocalNetwork, AThreadSleepsUntilItsTurnHasCome) {
  TestTurn turn;
  std::atomic<bool> hasReturned = false;
  onEachRank(2, [&](Communicator &communicator) {
    auto receive = [&](Request request) {
      communicator.waitForTurn(request, turn);
      hasReturned = turn.asked != nullptr;
    };
    sendUntilAsked(communicator, turn, receive, [&] {
      EXPECT_FALSE(hasReturned);
      turn.come();
    });
  });
  EXPECT_TRUE(hasReturned);
  EXPECT_FALSE(turn.isWithdrawn);
}

TEST(LocalNetwork, AFailureWithdrawsATurn) {
  TestTurn turn;
  onEachRank(2, [&](Communicator &communicator) {
    auto receive = [&](Request request) {
      communicator.waitForTurn(request, turn); // the message has come
    };
    sendUntilAsked(communicator, turn, receive,
                   [&] { communicator.fail("stop"); });
  });
  EXPECT_TRUE(turn.isWithdrawn);
}

TEST(LocalNetwork, AFailureWakesAllThatWait) {
  onEachRank(3, [](Communicator &communicator) {
    float value = 0.0f;
    expectFailureWakesAllThatWait(communicator, &value);
  });
}

TEST(LocalNetwork, RanksThatDisagreeFailTheRun) {
  onEachRank(2, [](Communicator &communicator) {
    std::vector<float> part(4), whole(8);
    expectDisagreementFailsTheRun(communicator, part.data(), whole.data());
  });
}
