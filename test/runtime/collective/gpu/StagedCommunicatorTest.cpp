// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/StagedCommunicator.h"
#include "runtime/collective/local/LocalNetwork.h"
#include "test/runtime/collective/CommunicatorChecks.h"
#include "test/runtime/collective/RandomCollective.h"
#include "test/runtime/collective/gpu/GpuRanks.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

using Body = std::function<void(StagedCommunicator &, cuda::CudaDevice &)>;

/// Runs `body` as each rank, over a network of threads.
void onEachRank(int ranks, uint64_t seed, const Body &body,
                const cuda::DriverApi &driver = simt::emulatedDriver()) {
  GpuRanks gpu(ranks, seed, driver);
  LocalNetwork network(ranks);
  gpu.run([&](int rank) {
    StagedCommunicator staged(network.at(rank), gpu.device(rank));
    body(staged, gpu.device(rank));
  });
}

} // namespace

TEST(StagedCommunicator, EveryCollectiveGivesTheReference) {
  for (int ranks : {1, 2, 3, 4, 6})
    for (uint64_t seed : {1, 2})
      onEachRank(ranks, seed,
                 [&](StagedCommunicator &staged, cuda::CudaDevice &device) {
                   ThroughGpu hosts(staged, device);
                   exchangeRandomly(hosts, seed, 60, 200);
                 });
}

TEST(StagedCommunicator, CopiesStayOnTheGpu) {
  onEachRank(1, 1, [](StagedCommunicator &staged, cuda::CudaDevice &device) {
    ThroughGpu hosts(staged, device);
    std::vector<char> values(100, 1), copied(values.size());
    Request copy = hosts.copy(values.data(), copied.data(), values.size());
    while (!hosts.isDone(copy)) {
    }
    hosts.wait(copy);
    EXPECT_EQ(values, copied);
    EXPECT_EQ(staged.pinnedBytes(), 0);
  });
}

// A sum that is started while another adds to the same place gets its result.
TEST(StagedCommunicator, SumsOfOneSequenceFollowEachOther) {
  constexpr int kSums = 20;
  for (bool lastFirst : {false, true})
    onEachRank(2, 1, [&](StagedCommunicator &staged, cuda::CudaDevice &device) {
      std::vector<float> terms(16, 1.0f), sums(8);
      GpuBuffer whole(device, 64), part(device, 32);
      whole.write(terms.data());
      part.fill(0);
      std::vector<Request> requests;
      for (int i = 0; i < kSums; ++i)
        requests.push_back(staged.start(Stream::Gradients, addParts(16),
                                        allRanks(staged), whole.place(),
                                        part.place()));
      if (!lastFirst)
        for (Request request : requests)
          staged.wait(request);
      staged.wait(requests.back());
      part.read(sums.data());
      EXPECT_EQ(sums, std::vector<float>(8, 2.0f * kSums));
      // The earlier ones are complete, too: the part is the rank's own again.
      part.fill(0);
      for (Request request : requests)
        staged.wait(request);
      part.read(sums.data());
      EXPECT_EQ(sums, std::vector<float>(8, 0.0f));
    });
}

// The next bytes must not overwrite those still on their way to the GPU.
TEST(StagedCommunicator, PinnedBuffersAreUsedAgain) {
  constexpr int kMessages = 5;
  onEachRank(2, 1, [](StagedCommunicator &staged, cuda::CudaDevice &device) {
    std::vector<std::vector<char>> values;
    std::vector<std::unique_ptr<GpuBuffer>> buffers;
    for (int i = 0; i < kMessages; ++i) {
      int64_t bytes = 1000 * (kMessages - i);
      values.emplace_back(bytes, 'a' + i);
      GpuBuffer &buffer =
          *buffers.emplace_back(std::make_unique<GpuBuffer>(device, bytes));
      if (staged.rank() == 0) {
        buffer.write(values.back().data());
        staged.wait(staged.send(Stream::Forward, 1, buffer.place(), bytes));
      } else {
        staged.wait(staged.receive(Stream::Forward, 0, buffer.place(), bytes));
      }
      EXPECT_EQ(staged.pinnedBytes(), 1 << 16);
    }
    for (int i = 0; i < kMessages; ++i) {
      std::vector<char> got(values[i].size());
      buffers[i]->read(got.data());
      EXPECT_EQ(got, values[i]);
    }
  });
}

TEST(StagedCommunicator, AFailureWakesAllThatWait) {
  onEachRank(3, 1, [](StagedCommunicator &staged, cuda::CudaDevice &device) {
    GpuBuffer message(device, 4);
    expectFailureWakesAllThatWait(staged, message.place());
  });
}

TEST(StagedCommunicator, RanksThatDisagreeFailTheRun) {
  onEachRank(2, 1, [](StagedCommunicator &staged, cuda::CudaDevice &device) {
    GpuBuffer part(device, 16), whole(device, 32);
    expectDisagreementFailsTheRun(staged, part.place(), whole.place());
  });
}

// Rank 0 has the error; rank 1 waits for it.
TEST(StagedCommunicator, AnErrorOfTheDriverFailsTheRun) {
  auto body = [](StagedCommunicator &staged, cuda::CudaDevice &device) {
    GpuBuffer part(device, 16);
    staged.setPosition("optimizer");
    std::string failure = failureOf([&] {
      if (staged.rank() == 0)
        staged.start(Stream::Step, addParts(4), {{0}, 0, {}}, part.place(),
                     part.place());
      staged.wait(staged.receive(Stream::Forward, 0, part.place(), 4));
    });
    EXPECT_TRUE(
        failure.starts_with("rank 0: optimizer: GPU 0 (emulated GPU): "))
        << failure;
  };
  onEachRank(2, 1, body, driverWithoutLaunches());
}
