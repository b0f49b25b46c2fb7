// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "test/runtime/collective/CommunicatorChecks.h"
#include "test/runtime/collective/RandomCollective.h"
#include "test/runtime/collective/gpu/GpuRanks.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace rota;
using namespace rota::test;

namespace {

using Body = std::function<void(Communicator &, cuda::CudaDevice &)>;
using Clock = std::chrono::steady_clock;

/// Runs `body` as each rank of a network, each in its own thread.
void onEachRank(int ranks, uint64_t seed, bool timing, const Body &body,
                const cuda::DriverApi &driver = simt::emulatedDriver()) {
  GpuRanks gpu(ranks, seed, driver);
  SharedGpuNetwork network(gpu.all(), timing);
  gpu.run([&](int rank) { body(network.at(rank), gpu.device(rank)); });
}

void onEachRank(int ranks, const Body &body) {
  onEachRank(ranks, 1, /*timing=*/false, body);
}

/// The device's compute stream does nothing before `mayGoOn` returns true.
void hold(cuda::CudaDevice &device, std::function<bool()> mayGoOn) {
  simt::enqueueHost(device.computeStream(),
                    {"hold", {}, [] {}, std::move(mayGoOn)});
}

} // namespace

TEST(SharedGpuNetwork, EveryCollectiveGivesTheReference) {
  for (int ranks : {1, 2, 3, 4, 6, 8})
    for (uint64_t seed : {1, 2})
      onEachRank(ranks, seed, /*timing=*/seed == 2,
                 [&](Communicator &communicator, cuda::CudaDevice &device) {
                   ThroughGpu hosts(communicator, device);
                   exchangeRandomly(hosts, seed, 60, 200);
                 });
}

// Only then can a rank ask its stream for the next kernels at once.
TEST(SharedGpuNetwork, TheHostDoesNotWaitForTheGpu) {
  GpuRanks gpu(2, 1);
  SharedGpuNetwork network(gpu.all(), /*timing=*/false);
  std::vector<std::unique_ptr<GpuBuffer>> buffers(2);
  std::atomic<bool> mayGoOn = false;
  Clock::time_point end = Clock::now() + std::chrono::seconds(10);
  std::vector<float> values[2] = {{1.0f, 2.0f}, {0.0f, 0.0f}};
  gpu.run([&](int rank) {
    buffers[rank] = std::make_unique<GpuBuffer>(gpu.device(rank), 8);
    hold(gpu.device(rank), [&] { return mayGoOn || Clock::now() > end; });
    buffers[rank]->write(values[rank].data());
    Communicator &communicator = network.at(rank);
    communicator.wait(
        rank == 0
            ? communicator.send(Stream::Forward, 1, buffers[0]->place(), 8)
            : communicator.receive(Stream::Forward, 0, buffers[1]->place(), 8));
  });
  EXPECT_LT(Clock::now(), end);
  mayGoOn = true;
  buffers[1]->read(values[1].data());
  EXPECT_EQ(values[1], values[0]);
}

TEST(SharedGpuNetwork, CopiesRunBesideTheCaller) {
  onEachRank(1, [](Communicator &communicator, cuda::CudaDevice &device) {
    ThroughGpu hosts(communicator, device);
    std::vector<char> values(100, 1), copied(values.size());
    Request copy = hosts.copy(values.data(), copied.data(), values.size());
    while (!hosts.isDone(copy))
      std::this_thread::yield();
    hosts.wait(copy);
    EXPECT_EQ(values, copied);
  });
}

// Rank 1 joins the gather only after the message that rank 0 sends behind it.
TEST(SharedGpuNetwork, AGatherThatWaitsHoldsUpNoMessage) {
  onEachRank(2, [&](Communicator &communicator, cuda::CudaDevice &device) {
    ThroughGpu hosts(communicator, device);
    std::vector<float> part(2, 1.0f + communicator.rank()), whole(4);
    float message = 7.0f, received = 0.0f;
    auto startGather = [&] {
      return hosts.start(Stream::Weights, gather(4), allRanks(communicator),
                         part.data(), whole.data());
    };
    if (communicator.rank() == 0) {
      Request gathered = startGather();
      hosts.wait(hosts.send(Stream::Forward, 1, &message, sizeof message));
      EXPECT_FALSE(hosts.isDone(gathered));
      hosts.send(Stream::Backward, 1, &message, sizeof message);
      hosts.wait(gathered);
    } else {
      hosts.wait(hosts.receive(Stream::Forward, 0, &received, sizeof received));
      EXPECT_EQ(received, 7.0f);
      // Rank 0 has asked whether the gather is done.
      hosts.wait(
          hosts.receive(Stream::Backward, 0, &received, sizeof received));
      hosts.wait(startGather());
    }
    EXPECT_EQ(whole, (std::vector<float>{1.0f, 1.0f, 2.0f, 2.0f}));
  });
}

// The second of two sums into one buffer begins when the first has ended.
TEST(SharedGpuNetwork, SumsOfOneSequenceFollowEachOther) {
  constexpr int kSums = 100;
  onEachRank(2, [&](Communicator &communicator, cuda::CudaDevice &device) {
    std::vector<float> terms(16, 1.0f), sums(8);
    GpuBuffer whole(device, 64), part(device, 32);
    whole.write(terms.data());
    part.fill(0);
    std::vector<Request> requests;
    for (int i = 0; i < kSums; ++i)
      requests.push_back(communicator.start(Stream::Gradients, addParts(16),
                                            allRanks(communicator),
                                            whole.place(), part.place()));
    communicator.wait(requests.back());
    part.read(sums.data());
    EXPECT_EQ(sums, std::vector<float>(8, 2.0f * kSums));
    for (Request request : requests)
      EXPECT_TRUE(communicator.isDone(request));
  });
}

TEST(SharedGpuNetwork, TimesAreMeasuredOnlyWhenAsked) {
  for (bool timing : {false, true})
    onEachRank(2, 1, timing,
               [&](Communicator &communicator, cuda::CudaDevice &device) {
                 GpuBuffer part(device, 8), whole(device, 16);
                 TransferTime time = communicator.run(
                     Stream::Weights, gather(4), allRanks(communicator),
                     part.place(), whole.place());
                 EXPECT_EQ(time.begin > 0.0, timing);
                 EXPECT_EQ(time.end > time.begin, timing);
               });
}

TEST(SharedGpuNetwork, AFailureWakesAllThatWait) {
  onEachRank(3, [](Communicator &communicator, cuda::CudaDevice &device) {
    GpuBuffer message(device, 4);
    expectFailureWakesAllThatWait(communicator, message.place());
  });
}

TEST(SharedGpuNetwork, RanksThatDisagreeFailTheRun) {
  onEachRank(2, [](Communicator &communicator, cuda::CudaDevice &device) {
    GpuBuffer part(device, 16), whole(device, 32);
    expectDisagreementFailsTheRun(communicator, part.place(), whole.place());
  });
}

// Transfers that were enqueued before the failure still read and write.
TEST(SharedGpuNetwork, TheGpuIsIdleWhenARankThrows) {
  constexpr int kSums = 20;
  GpuRanks gpu(2, 1);
  SharedGpuNetwork network(gpu.all(), /*timing=*/false);
  std::vector<std::unique_ptr<GpuBuffer>> parts, wholes;
  for (cuda::CudaDevice *device : gpu.all()) {
    parts.push_back(std::make_unique<GpuBuffer>(*device, 8));
    wholes.push_back(std::make_unique<GpuBuffer>(*device, 16));
  }
  std::vector<float> terms(4, 1.0f);
  std::barrier started(2);
  gpu.run([&](int rank) {
    Communicator &communicator = network.at(rank);
    parts[rank]->fill(0);
    wholes[rank]->write(terms.data());
    Clock::time_point end = Clock::now() + std::chrono::milliseconds(50);
    hold(gpu.device(rank), [end] { return Clock::now() > end; });
    std::string failure = failureOf([&] {
      for (int i = 0; i < kSums; ++i)
        communicator.start(Stream::Gradients, addParts(4),
                           allRanks(communicator), wholes[rank]->place(),
                           parts[rank]->place());
      started.arrive_and_wait();
      if (rank == 1)
        communicator.fail("rank 1: stops");
      communicator.wait(communicator.receive(Stream::Forward, 1 - rank,
                                             wholes[rank]->place(), 4));
    });
    EXPECT_EQ(failure, "rank 1: stops");
    auto *sums = static_cast<const float *>(parts[rank]->place());
    EXPECT_EQ(sums[0], 2.0f * kSums);
  });
}

TEST(SharedGpuNetwork, AnErrorOfTheDriverFailsTheRun) {
  auto body = [](Communicator &communicator, cuda::CudaDevice &device) {
    communicator.setPosition("chunk 3, REDUCE_GRAD");
    GpuBuffer whole(device, 16), part(device, 8);
    std::string failure = failureOf([&] {
      communicator.run(Stream::Gradients, addParts(4), allRanks(communicator),
                       whole.place(), part.place());
    });
    std::string where = ": chunk 3, REDUCE_GRAD: GPU 0 (emulated GPU): ";
    EXPECT_TRUE(failure.starts_with("rank 0" + where) ||
                failure.starts_with("rank 1" + where))
        << failure;
    EXPECT_TRUE(failure.ends_with("(CUDA_ERROR_LAUNCH_FAILED)")) << failure;
    EXPECT_EQ(failureOf([&] { communicator.isDone(1); }), failure);
  };
  onEachRank(2, 1, /*timing=*/false, body, driverWithoutLaunches());
}
