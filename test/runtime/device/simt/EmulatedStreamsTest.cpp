// SPDX-License-Identifier: Apache-2.0
//
// Calls that order the work of streams, and calls that do not.
#include "test/runtime/device/simt/EmulatedGpu.h"

#include <numeric>
#include <thread>

using namespace rota;
using namespace rota::test;
using cuda::StreamHandle;

namespace {

constexpr uint64_t kSeeds = 10;

simt::EmulatedDriverOptions seeded(uint64_t seed) {
  simt::EmulatedDriverOptions options;
  options.seed = seed;
  return options;
}

std::vector<int32_t> ascending(int32_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(EmulatedStreams, AStreamKeepsItsOrder) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EmulatedGpu gpu(seeded(seed));
    StreamHandle stream = gpu.stream();
    for (int32_t i = 0; i < 200; ++i)
      gpu.append(i, stream);
    EXPECT_EQ(gpu.log(), ascending(200));
  }
}

TEST(EmulatedStreams, TheNullStreamIsOneOfThem) {
  EmulatedGpu gpu;
  gpu.append(0, nullptr);
  gpu.append(1, nullptr);
  EXPECT_SUCCESS(gpu.api.synchronizeStream(nullptr));
  EXPECT_EQ(gpu.log(), ascending(2));
}

TEST(EmulatedStreams, EventsOrderStreams) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EmulatedGpu gpu(seeded(seed));
    std::vector<StreamHandle> streams;
    for (int i = 0; i < 3; ++i)
      streams.push_back(gpu.stream());
    for (int32_t i = 0; i < 200; ++i) {
      StreamHandle stream = streams[i * i % 3];
      gpu.append(i, stream);
      for (StreamHandle other : streams)
        gpu.order(stream, other);
    }
    EXPECT_EQ(gpu.log(), ascending(200));
  }
}

/// The number of seeds, of 40, by which 1 is appended before 0, which stream
/// `first` appends after `before` operations, stream `second` after `behind`.
int wrongOrders(int before, int behind) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    EmulatedGpu gpu(seeded(seed));
    StreamHandle first = gpu.stream(), second = gpu.stream();
    for (int i = 0; i < before; ++i)
      EXPECT_SUCCESS(gpu.launch("nothing", {}, first));
    gpu.append(0, first);
    for (int i = 0; i < behind; ++i)
      EXPECT_SUCCESS(gpu.launch("nothing", {}, second));
    gpu.append(1, second);
    wrong += gpu.log() != ascending(2);
  }
  return wrong;
}

/// Also where the stream that should wait has much to do before.
TEST(EmulatedStreams, AMissingWaitIsSeen) {
  EXPECT_GT(wrongOrders(0, 0), 0);
  EXPECT_GT(wrongOrders(30, 0), 0);
  EXPECT_GT(wrongOrders(0, 30), 0);
}

/// Without a wait of the host for what the GPU does, the host finds no bytes
/// from before, with which it might go on: its copy has been asked for.
TEST(EmulatedStreams, AMissingWaitOfTheHostIsSeen) {
  int early = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    EmulatedGpu gpu(seeded(seed));
    auto *host = gpu.allocateHost<uint8_t>(1);
    auto *device = gpu.allocate<uint8_t>(1);
    StreamHandle stream = gpu.stream();
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(device), 1, 1, stream));
    EXPECT_SUCCESS(gpu.api.copy(addressOf(host), addressOf(device), 1, stream));
    int found = *const_cast<volatile uint8_t *>(host);
    EXPECT_TRUE(found == 1 || found == 0xFF) << found;
    early += found == 0xFF;
    EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
    EXPECT_EQ(*host, 1);
  }
  EXPECT_GT(early, 0);
}

/// If the second stream waited for the second record, none could go on.
TEST(EmulatedStreams, AWaitIsForTheRecordBeforeIt) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EmulatedGpu gpu(seeded(seed));
    StreamHandle first = gpu.stream(), second = gpu.stream();
    cuda::EventHandle event = gpu.event();
    gpu.append(0, first);
    EXPECT_SUCCESS(gpu.api.recordEvent(event, first));
    EXPECT_SUCCESS(gpu.api.waitEvent(second, event, 0));
    gpu.append(1, second);
    gpu.order(second, first);
    gpu.append(2, first);
    EXPECT_SUCCESS(gpu.api.recordEvent(event, first));
    EXPECT_EQ(gpu.log(), ascending(3));
  }
}

TEST(EmulatedStreams, AWaitForTheLatestRecord) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EmulatedGpu gpu(seeded(seed));
    StreamHandle first = gpu.stream(), second = gpu.stream();
    cuda::EventHandle event = gpu.event();
    for (int32_t i = 0; i < 3; ++i) {
      gpu.append(i, first);
      EXPECT_SUCCESS(gpu.api.recordEvent(event, first));
    }
    EXPECT_SUCCESS(gpu.api.waitEvent(second, event, 0));
    gpu.append(3, second);
    EXPECT_EQ(gpu.log(), ascending(4));
  }
}

TEST(EmulatedStreams, AnEventThatWasNeverRecordedIsNoWait) {
  EmulatedGpu gpu;
  StreamHandle first = gpu.stream(), second = gpu.stream();
  cuda::EventHandle event = gpu.event();
  EXPECT_SUCCESS(gpu.api.queryEvent(event));
  EXPECT_SUCCESS(gpu.api.synchronizeEvent(event));
  EXPECT_SUCCESS(gpu.api.waitEvent(second, event, 0));
  gpu.append(0, second);
  gpu.order(second, first);
  EXPECT_SUCCESS(gpu.api.recordEvent(event, first));
  EXPECT_EQ(gpu.log(), ascending(1));
}

TEST(EmulatedStreams, EventsSayWhetherTheyAreDone) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  cuda::EventHandle event = gpu.event();
  std::mutex mutex;
  std::unique_lock held(mutex);
  simt::enqueueHost(stream, {"", {}, [&] { std::lock_guard lock(mutex); }});
  EXPECT_SUCCESS(gpu.api.recordEvent(event, stream));
  EXPECT_EQ(gpu.api.queryEvent(event), cuda::kNotReady);
  held.unlock();
  EXPECT_SUCCESS(gpu.api.synchronizeEvent(event));
  EXPECT_SUCCESS(gpu.api.queryEvent(event));
}

TEST(EmulatedStreams, TimeBetweenEvents) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  cuda::EventHandle begin = gpu.event(cuda::kTimingEvent),
                    end = gpu.event(cuda::kTimingEvent), untimed = gpu.event();
  float time = -1;
  EXPECT_SUCCESS(gpu.api.recordEvent(begin, stream));
  EXPECT_EQ(gpu.api.elapsedTime(&time, begin, end), simt::kInvalidHandle);
  gpu.append(0, stream);
  EXPECT_SUCCESS(gpu.api.recordEvent(untimed, stream));
  EXPECT_SUCCESS(gpu.api.recordEvent(end, stream));
  EXPECT_SUCCESS(gpu.api.synchronizeEvent(end));
  EXPECT_SUCCESS(gpu.api.elapsedTime(&time, begin, end));
  EXPECT_GE(time, 0);
  EXPECT_EQ(gpu.api.elapsedTime(&time, begin, untimed), simt::kInvalidHandle);
}

TEST(EmulatedStreams, ADestroyedStreamDoesItsWork) {
  EmulatedGpu gpu;
  StreamHandle stream = nullptr, other = gpu.stream();
  EXPECT_SUCCESS(gpu.api.createStream(&stream, cuda::kNonBlockingStream));
  for (int32_t i = 0; i < 20; ++i)
    gpu.append(i, stream);
  gpu.order(stream, other);
  EXPECT_SUCCESS(gpu.api.destroyStream(stream));
  EXPECT_EQ(gpu.api.synchronizeStream(stream), simt::kInvalidHandle);
  EXPECT_EQ(gpu.log(), ascending(20));
}

TEST(EmulatedStreams, ThreadsAskAtTheSameTime) {
  EmulatedGpu gpu(seeded(1));
  constexpr int32_t kThreads = 4, kEach = 100;
  std::vector<StreamHandle> streams;
  for (int i = 0; i < kThreads; ++i)
    streams.push_back(gpu.stream());
  std::vector<std::thread> threads;
  for (int32_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      EXPECT_SUCCESS(gpu.api.setContext(gpu.context));
      for (int32_t i = 0; i < kEach; ++i) {
        gpu.append(thread * kEach + i, streams[thread]);
        if (i % 10 == 0)
          EXPECT_SUCCESS(gpu.api.synchronizeStream(streams[thread]));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<int32_t> next(kThreads), log = gpu.log();
  EXPECT_EQ(log.size(), size_t(kThreads * kEach));
  for (int32_t value : log)
    EXPECT_EQ(value % kEach, next[value / kEach]++);
}

} // namespace
