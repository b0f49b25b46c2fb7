// SPDX-License-Identifier: Apache-2.0
//
// Recordings of ranks that share a GPU, on the emulated driver, which checks
// the rules of captures.
#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/device/simt/Services.h"
#include "test/runtime/collective/CommunicatorChecks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace rota;
using namespace rota::test;

namespace {

constexpr int64_t kPartBytes = 16;

class SharedRecording : public testing::Test {
protected:
  void make(int ranks, uint64_t seed,
            const cuda::DriverApi &api = simt::emulatedDriver()) {
    simt::setEmulatedDriverOptions({.threads = 1, .seed = seed});
    static const RotaSimtKernel *const image[] = {nullptr};
    static const RotaGpuCode code = {ROTA_GPU_HOST, 0, image, sizeof image};
    auto gpu = std::make_shared<cuda::Gpu>(api, 0, std::span(&code, 1));
    std::vector<cuda::CudaDevice *> all;
    for (int rank = 0; rank < ranks; ++rank) {
      devices.push_back(std::make_unique<cuda::CudaDevice>(gpu, nullptr));
      all.push_back(devices.back().get());
      arenas.push_back(all.back()->makeArena((ranks + 2) * kPartBytes));
    }
    network = std::make_unique<SharedGpuNetwork>(all, /*timing=*/false);
  }
  ~SharedRecording() override {
    network.reset();
    arenas.clear();
  }

  void onEachRank(const std::function<void(int rank)> &body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < devices.size(); ++rank)
      threads.emplace_back([&, rank] { body(static_cast<int>(rank)); });
    for (std::thread &thread : threads)
      thread.join();
  }

  Communicator &at(int rank) { return network->at(rank); }
  Recorder &recorder(int rank) { return *at(rank).recorder(); }
  std::unique_ptr<Recording> end(int rank) {
    return recorder(rank).end([] { return ""; });
  }

  /// Own part, a copy of it, then the parts of all ranks.
  void *part(int rank) { return arenas[rank]->at(0); }
  void *copied(int rank) { return arenas[rank]->at(kPartBytes); }
  void *whole(int rank) { return arenas[rank]->at(2 * kPartBytes); }

  /// Copies the own part, gathers the copies, and clears the copy.
  void ask(int rank) {
    auto ranks = static_cast<int64_t>(devices.size());
    Device &device = *devices[rank];
    device.copy(nullptr, part(rank), copied(rank), kPartBytes);
    at(rank).run(Stream::Weights, gather(ranks * kPartBytes / 4),
                 allRanks(at(rank)), copied(rank), whole(rank));
    device.zero(nullptr, copied(rank), kPartBytes);
  }

  void write(int rank, int32_t value) {
    std::vector<int32_t> values(kPartBytes / 4, value);
    devices[rank]->write(values.data(), part(rank), kPartBytes);
  }
  /// The sum over the parts of all ranks.
  int64_t readSum(int rank) {
    std::vector<int32_t> all(devices.size() * kPartBytes / 4);
    devices[rank]->read(whole(rank), all.data(),
                        static_cast<int64_t>(4 * all.size()));
    return std::accumulate(all.begin(), all.end(), int64_t(0));
  }

  std::vector<std::unique_ptr<cuda::CudaDevice>> devices;
  std::vector<std::unique_ptr<Arena>> arenas;
  std::unique_ptr<SharedGpuNetwork> network;
};

} // namespace

// The values that each rank writes before a replay are those that all read
// behind it, and the next write comes after it, although no rank waits for the
// GPU in between.
TEST_F(SharedRecording, ReplaysAreInTheOrderOfAllRanks) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    make(3, seed);
    onEachRank([&](int rank) {
      write(rank, 1);
      ask(rank);
      recorder(rank).begin();
      ask(rank);
      std::unique_ptr<Recording> recording = end(rank);
      for (int32_t value : {10, 20, 30}) {
        write(rank, value + rank);
        recording->run();
        auto read = devices[rank]->startRead(whole(rank), 3 * kPartBytes);
        write(rank, -1);
        auto bytes = read->wait();
        auto *got = reinterpret_cast<const int32_t *>(bytes.data());
        for (int32_t i = 0; i < 12; ++i)
          EXPECT_EQ(got[i], value + i / 4);
      }
      write(rank, 7);
      ask(rank); // without the recording
      EXPECT_EQ(readSum(rank), 12 * 7);
    });
    network.reset();
    arenas.clear();
    devices.clear();
  }
}

namespace {
/// Threads that are in a call of the driver, and the most at one time.
std::atomic<int> callers = 0, mostCallers = 0;

/// The driver's function of that name, slowly and counted.
template <auto Function, typename... Arguments>
cuda::Result counted(Arguments... arguments) {
  int now = ++callers;
  mostCallers = std::max(mostCallers.load(), now);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  cuda::Result result = (simt::emulatedDriver().*Function)(arguments...);
  --callers;
  return result;
}
} // namespace

// CUDA does not say that threads may use one capture at once.
TEST_F(SharedRecording, OneThreadAtATimeAsksTheDriver) {
  using Api = cuda::DriverApi;
  static Api slow = simt::emulatedDriver();
  slow.copy = counted<&Api::copy>;
  slow.fill8 = counted<&Api::fill8>;
  slow.recordEvent = counted<&Api::recordEvent>;
  slow.waitEvent = counted<&Api::waitEvent>;
  make(3, 1, slow);
  onEachRank([&](int rank) {
    recorder(rank).begin();
    for (int i = 0; i < 5; ++i)
      ask(rank);
    end(rank);
  });
  EXPECT_EQ(mostCallers, 1);
}

// Nothing joins the stream of the copy to the ranks' streams.
TEST_F(SharedRecording, ATransferThatNobodyWaitsForIsAnError) {
  make(2, 1);
  onEachRank([&](int rank) {
    std::string failure = failureOf([&] {
      recorder(rank).begin();
      if (rank == 1)
        at(rank).copy(part(rank), copied(rank), kPartBytes);
      end(rank);
    });
    EXPECT_NE(failure.find("recording the step"), std::string::npos) << failure;
    EXPECT_NE(failure.find("CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
              std::string::npos)
        << failure;
  });
}

// Before, in and behind the recording. The streams then capture no more.
TEST_F(SharedRecording, AFailureEndsItOnAllRanks) {
  for (int place : {0, 1, 2, 3}) {
    make(3, 1);
    onEachRank([&](int rank) {
      auto failAt = [&](int here) {
        if (rank == 1 && place == here)
          throw RunError("rank 1: stops");
      };
      std::string failure = failureOf([&] {
        try {
          write(rank, 1);
          ask(rank);
          failAt(0);
          recorder(rank).begin();
          failAt(1);
          ask(rank);
          failAt(2);
          std::unique_ptr<Recording> recording = end(rank);
          recording->run();
          failAt(3);
          recording->run();
        } catch (const RunError &error) {
          at(rank).fail(error.what());
          throw;
        }
      });
      EXPECT_EQ(failure, "rank 1: stops") << "rank " << rank;
    });
    for (auto &device : devices)
      device->synchronize();
    network.reset();
    arenas.clear();
    devices.clear();
  }
}
