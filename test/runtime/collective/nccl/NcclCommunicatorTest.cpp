// SPDX-License-Identifier: Apache-2.0
//
// Ranks on fake GPUs, connected by a fake NCCL.
#include "runtime/Error.h"
#include "runtime/collective/nccl/HostTransfers.h"
#include "test/runtime/collective/nccl/NcclMachine.h"

#include <algorithm>
#include <chrono>
#include <latch>

using namespace rota;
using namespace rota::test;

// A small workspace cuts rows; in a large one a piece has many.
TEST(NcclCommunicator, EveryCollectiveGivesTheReference) {
  for (int ranks : {1, 2, 3, 4, 6})
    for (int64_t bytes : {200 << 10, 4 << 20}) {
      uint64_t seed = 20 + ranks;
      Machine{ranks, planOf(ranks, seed, 60, 400), bytes}.run(
          [&](TestRank &test) {
            Finished communicator(test);
            exchangeRandomly(communicator, seed, 60, 400);
          });
    }
  EXPECT_EQ(openFakeHandles(), 0);
}

TEST(NcclCommunicator, HostBuffersGiveTheReference) {
  for (int ranks : {2, 4})
    Machine{ranks, planOf(ranks, 7, 40, 300)}.run([&](TestRank &test) {
      std::vector<char> staging(64 << 10);
      HostTransfers communicator(test.communicator, test.device, staging.data(),
                                 staging.size());
      exchangeRandomly(communicator, 7, 40, 300);
    });
}

// The receive is behind the send in the order of both ranks.
TEST(NcclCommunicator, MessagesOfBothDirectionsPassEachOther) {
  Machine{2, planOfAll(2)}.run([](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    int own = communicator.rank(), other = 1 - own, received = -1;
    Request sent = communicator.send(Stream::Forward, other, &own, 4);
    Request request =
        communicator.receive(Stream::Forward, other, &received, 4);
    communicator.wait(sent);
    communicator.wait(request);
    test.synchronize();
    EXPECT_EQ(received, other);
  });
}

// Rank 1 joins the gather only after the message that rank 0 sends behind it.
TEST(NcclCommunicator, AGatherThatWaitsHoldsUpNoMessage) {
  Machine{2, planOfAll(2)}.run([](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    float part = 1.0f + communicator.rank(), whole[2] = {}, message = 7.0f;
    auto startGather = [&] {
      return communicator.start(Stream::Weights, gather(2),
                                allRanks(communicator), &part, whole);
    };
    if (communicator.rank() == 0) {
      Request gathered = startGather();
      communicator.finish(communicator.send(Stream::Forward, 1, &message, 4));
      communicator.finish(gathered);
    } else {
      float received = 0.0f;
      communicator.finish(
          communicator.receive(Stream::Forward, 0, &received, 4));
      EXPECT_EQ(received, 7.0f);
      communicator.finish(startGather());
    }
    EXPECT_EQ(whole[0], 1.0f);
    EXPECT_EQ(whole[1], 2.0f);
  });
}

// The compute stream waits, not the rank; and a transfer waits for what the
// compute stream was asked for before.
TEST(NcclCommunicator, WaitIsInTheOrderOfTheGpu) {
  std::latch waited(1);
  Machine{2, planOfAll(2)}.run([&](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    const cuda::DriverApi &api = test.device.gpu().api();
    auto address = [](void *place) {
      return reinterpret_cast<cuda::Address>(place);
    };
    int value = communicator.rank() == 0 ? 42 : 0, received = 0, copied = 0;
    if (communicator.rank() == 1) {
      Request request =
          communicator.receive(Stream::Forward, 0, &received, sizeof received);
      EXPECT_FALSE(communicator.isDone(request));
      communicator.wait(request);
      api.copy(address(&copied), address(&received), 4,
               test.device.computeStream());
      waited.count_down();
      test.synchronize();
      EXPECT_EQ(copied, 42);
      return;
    }
    waited.wait();
    int sent = 0;
    api.copy(address(&sent), address(&value), 4, test.device.computeStream());
    communicator.wait(
        communicator.send(Stream::Forward, 1, &sent, sizeof sent));
    test.synchronize();
  });
}

TEST(NcclCommunicator, MessagesWithoutARouteKeepTheirOrder) {
  Machine{3, planOfAll(3)}.run([](TestRank &test) {
    Finished communicator(test);
    int rank = communicator.rank();
    for (int value : {5, 6})
      if (rank != 0) {
        int sent = 10 * rank + value;
        communicator.wait(communicator.send(Stream::Step, 0, &sent, 4));
      } else {
        for (int peer : {1, 2}) {
          int received = 0;
          communicator.wait(
              communicator.receive(Stream::Step, peer, &received, 4));
          EXPECT_EQ(received, 10 * peer + value);
        }
      }
  });
}

TEST(NcclCommunicator, TimingGivesTheTimeOnTheGpu) {
  NcclCommunicator::Options options;
  options.timing = true;
  Machine(2, planOfAll(2), 1 << 20, options).run([](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    float part = 1.0f, whole[2];
    double before = 0.0;
    for (int i = 0; i < 3; ++i) {
      TransferTime time = communicator.run(
          Stream::Weights, gather(2), allRanks(communicator), &part, whole);
      EXPECT_LE(before, time.begin + 1e-3);
      EXPECT_LE(time.begin, time.end);
      EXPECT_LE(time.end, communicator.now() + 1e-3);
      before = time.end;
    }
  });
}

TEST(NcclCommunicator, AFailureEndsTheRanksTransfers) {
  Machine{2, planOfAll(2)}.run([](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    int value = 0;
    Request request = communicator.receive(
        Stream::Forward, 1 - communicator.rank(), &value, sizeof value);
    communicator.fail("rank 1: the disk is full");
    communicator.fail("rank 1: and on fire");
    EXPECT_TRUE(communicator.isDone(request));
    EXPECT_EQ(failureOf([&] { communicator.wait(request); }),
              "rank 1: the disk is full");
  });
  EXPECT_EQ(openFakeHandles(), 0);
}

TEST(NcclCommunicator, ErrorsOfNcclEndTheRun) {
  std::latch ready(2), failed(2);
  Machine{2, planOfAll(2)}.run([&](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    communicator.setPosition("stage 0, RECV_F from rank 1");
    ready.arrive_and_wait();
    breakFakeNccl(true);
    int value = 0;
    Request request = communicator.receive(
        Stream::Forward, 1 - communicator.rank(), &value, sizeof value);
    std::string message = failureOf([&] { communicator.finish(request); });
    EXPECT_EQ(message,
              "rank " + std::to_string(communicator.rank()) +
                  ": stage 0, RECV_F from rank 1: NCCL: another rank, or the "
                  "way to it, has failed: invalid usage");
    failed.arrive_and_wait();
    breakFakeNccl(false);
  });
}

// The rank waits in the driver, where only the abort ends its wait.
TEST(NcclCommunicator, TransfersThatHangAreReportedWithThePosition) {
  NcclCommunicator::Options options;
  options.patience = 0.5;
  Machine(2, planOfAll(2), 1 << 20, options).run([](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    if (communicator.rank() == 1)
      return;
    communicator.setPosition("stage 0, RECV_F from rank 1");
    int value = 0;
    communicator.wait(
        communicator.receive(Stream::Forward, 1, &value, sizeof value));
    communicator.setPosition("stage 0, F");
    test.synchronize();
    EXPECT_EQ(failureOf([&] {
                communicator.wait(
                    communicator.send(Stream::Forward, 1, &value, 4));
              }),
              "rank 0: stage 0, F: no transfer has ended in 0.5 seconds; the "
              "oldest under way: stage 0, RECV_F from rank 1: message of 4 "
              "bytes from rank 1 to rank 0");
  });
}

// Transfers of all kinds are recorded by all ranks and replayed.
TEST(NcclCommunicator, ReplaysGiveTheReference) {
  for (int ranks : {1, 2, 4}) {
    uint64_t seed = 40 + ranks;
    Machine{ranks, planOf(ranks, seed, 30, 300)}.run([&](TestRank &test) {
      NcclCommunicator &communicator = test.communicator;
      int rank = communicator.rank();
      std::vector<RandomCollective> all;
      std::vector<std::vector<uint8_t>> sources, results;
      for (int i = 0; i < 30; ++i) {
        all.emplace_back(seed * 10000 + i, makeMesh(ranks), 300);
        sources.push_back(all.back().source(rank));
        results.push_back(all.back().before(rank));
      }
      auto ask = [&] {
        std::vector<Request> requests;
        for (size_t i = 0; i < all.size(); ++i)
          requests.push_back(communicator.start(
              all[i].stream, all[i].collective, all[i].group(rank),
              sources[i].data(), results[i].data()));
        for (Request request : requests)
          communicator.wait(request);
      };
      auto check = [&] {
        test.synchronize();
        for (size_t i = 0; i < all.size(); ++i) {
          EXPECT_EQ(results[i], all[i].expected(rank)) << all[i].describe();
          std::vector<uint8_t> before = all[i].before(rank);
          std::copy(before.begin(), before.end(), results[i].begin());
        }
      };
      ask();
      check();
      communicator.recorder()->begin();
      ask();
      std::unique_ptr<Recording> recording =
          communicator.recorder()->end([] { return ""; });
      for (int replay = 0; replay < 2; ++replay) {
        recording->run();
        check();
      }
      ask();
      check();
    });
  }
  EXPECT_EQ(openFakeHandles(), 0);
}

/// Records a message from rank 1 to rank 0 behind the position 3.
static std::unique_ptr<Recording> recordMessage(TestRank &test, int &value) {
  NcclCommunicator &communicator = test.communicator;
  communicator.recorder()->begin();
  test.device.setPosition(3);
  communicator.wait(communicator.rank() == 0
                        ? communicator.receive(Stream::Forward, 1, &value, 4)
                        : communicator.send(Stream::Forward, 0, &value, 4));
  test.device.setPosition(4);
  return communicator.recorder()->end([&device = test.device] {
    return "stage 0, action " + std::to_string(device.position());
  });
}

// Rank 1 replays one step fewer. The abort waits for the end of the graph,
// which rank 0 can only destroy when its kernels have ended.
TEST(NcclCommunicator, ReplaysThatHangAreReportedWithTheAction) {
  NcclCommunicator::Options options;
  options.patience = 0.5;
  std::latch reported(2);
  Machine(2, planOfAll(2), 1 << 20, options).run([&](TestRank &test) {
    int value = test.communicator.rank();
    std::unique_ptr<Recording> recording = recordMessage(test, value);
    recording->run();
    test.synchronize();
    EXPECT_EQ(value, 1);
    if (test.communicator.rank() == 0) {
      recording->run();
      test.synchronize();
      EXPECT_EQ(
          failureOf([&] {
            test.communicator.wait(
                test.communicator.send(Stream::Backward, 1, &value, 4));
          }),
          "rank 0: stage 0, action 3: no transfer has ended in 0.5 seconds; "
          "the oldest under way: a recorded step");
    }
    reported.arrive_and_wait();
  });
  EXPECT_EQ(openFakeHandles(), 0);
}

// In a recorded step, the actions that the device comes to are progress.
TEST(NcclCommunicator, ALongRecordedStepIsNoHang) {
  NcclCommunicator::Options options;
  options.patience = 0.6;
  Machine(1, planOfAll(1), 1 << 20, options).run([&](TestRank &test) {
    test.communicator.recorder()->begin();
    for (int action = 0; action < 5; ++action) {
      test.device.setPosition(action);
      std::lock_guard lock(fakeMutex());
      fakeAsk(test.device.computeStream(),
              [end = std::chrono::steady_clock::time_point()]() mutable {
                auto now = std::chrono::steady_clock::now();
                if (end == std::chrono::steady_clock::time_point())
                  end = now + std::chrono::milliseconds(300);
                return now >= end;
              });
    }
    std::unique_ptr<Recording> recording =
        test.communicator.recorder()->end([] { return ""; });
    recording->run();
    while (test.device.position() < 4) { // the watch lets the GPU go on
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::lock_guard lock(fakeMutex());
      fakePump();
    }
    test.synchronize();
    EXPECT_EQ(failureOf([&] {
                test.communicator.wait(
                    test.communicator.copy(nullptr, nullptr, 0));
              }),
              "nothing was thrown");
  });
}

// Not the launcher and no time limit: the abort ends the others' transfers.
TEST(NcclCommunicator, AFailedRankAbortsBeforeItEnds) {
  std::string other =
      "rank 0: stage 0, action 3: NCCL: another rank, or the way to it, has "
      "failed: invalid usage";
  for (bool records : {false, true})
    Machine{2, planOfAll(2)}.run(
        [&](TestRank &test) {
          int value = 0;
          NcclCommunicator &communicator = test.communicator;
          communicator.setPosition("stage 0, action 3");
          std::unique_ptr<Recording> recording;
          if (records)
            recording = recordMessage(test, value);
          if (communicator.rank() == 1)
            throw RunError("rank 1: the disk is full");
          if (records)
            recording->run();
          else
            communicator.wait(
                communicator.receive(Stream::Forward, 1, &value, 4));
          test.synchronize(); // the abort ends it
          communicator.wait(communicator.send(Stream::Backward, 1, &value, 4));
        },
        {other, "rank 1: the disk is full"});
  EXPECT_EQ(openFakeHandles(), 0);
}

TEST(NcclCommunicator, RanksThatCannotConnectAbort) {
  failFakeSplits(true);
  std::string failure =
      "NCCL: split of the ranks: invalid usage: no more communicators";
  Machine{2, planOfAll(2)}.run([](TestRank &) {}, {failure, failure});
  failFakeSplits(false);
  EXPECT_EQ(openFakeHandles(), 0);
}

// No call of NCCL ends the wait for ranks that never come.
TEST(NcclCommunicator, RanksThatDoNotComeEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto connectAlone = [] {
    auto device = fakeDevice(0);
    std::vector<char> workspace(1 << 16);
    NcclCommunicator(*device, fakeNccl(), 0, 2, fakeId(), {}, workspace.data(),
                     1 << 16, {.patience = 0.3});
  };
  EXPECT_EXIT(connectAlone(), testing::ExitedWithCode(kExitRunFailed),
              "error: rank 0: start: no transfer has ended in 0.3 seconds; the "
              "oldest under way: connecting the ranks");
}

TEST(NcclCommunicator, RanksNeedAGpuEach) {
  NcclId id = fakeId();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      auto device = fakeDevice(rank == 0 ? 0 : 4);
      std::vector<char> workspace(1 << 16);
      EXPECT_EQ(failureOf([&] {
                  NcclCommunicator(*device, fakeNccl(), rank, 3, id, {},
                                   workspace.data(), 1 << 16, {});
                }),
                "ranks 1 and 2 have the same GPU: expected a GPU for each "
                "process of --ranks nccl; ranks that share one run with "
                "--ranks threads");
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(NcclCommunicator, RefusesWhatIsTooSmallOrUnplanned) {
  NcclPlan plan;
  plan.add({Stream::Step, false, {0, 1}});
  Machine{2, plan}.run([](TestRank &test) {
    float part = 1.0f, whole[2];
    NcclCommunicator &communicator = test.communicator;
    EXPECT_EQ(failureOf([&] {
                communicator.start(Stream::Weights, gather(2),
                                   allRanks(communicator), &part, whole);
              }),
              "rank " + std::to_string(communicator.rank()) +
                  ": start: expected a route of the plan, got stream " +
                  std::to_string(int(Stream::Weights)) + " of ranks 0, 1");
    std::vector<char> staging(1024);
    HostTransfers host(communicator, test.device, staging.data(), 1024);
    EXPECT_EQ(failureOf([&] { host.send(Stream::Step, 0, nullptr, 2000); }),
              "expected transfers of host memory of at most 1024 bytes, got "
              "2048");
    // Leaves without waiting: the destructor waits for the GPU.
  });
  auto device = fakeDevice(0);
  std::vector<char> workspace(1000);
  EXPECT_EQ(failureOf([&] {
              NcclCommunicator(*device, fakeNccl(), 0, 1, fakeId(), {},
                               workspace.data(), 1000, {});
            }),
            "expected a workspace of at least 768 bytes for each group of 1 "
            "ranks, got 512");
}
