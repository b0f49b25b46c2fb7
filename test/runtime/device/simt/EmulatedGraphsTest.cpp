// SPDX-License-Identifier: Apache-2.0
//
// Captures of streams, and launches of the graphs.
#include "test/runtime/device/simt/EmulatedGpu.h"

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

using namespace rota;
using namespace rota::test;
using cuda::StreamHandle;

namespace {

void begin(EmulatedGpu &gpu, StreamHandle stream) {
  EXPECT_SUCCESS(gpu.api.beginCapture(stream, cuda::kRelaxedCapture));
}

/// Ends a capture without error; the result can be launched.
cuda::GraphExecHandle end(EmulatedGpu &gpu, StreamHandle stream) {
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle executable = nullptr;
  EXPECT_SUCCESS(gpu.api.endCapture(stream, &graph));
  EXPECT_SUCCESS(gpu.api.instantiateGraph(&executable, graph, 0));
  EXPECT_SUCCESS(gpu.api.destroyGraph(graph));
  return executable;
}

/// Ends a capture that has an error.
cuda::Result endResult(EmulatedGpu &gpu, StreamHandle stream) {
  cuda::GraphHandle graph = nullptr;
  cuda::Result result = gpu.api.endCapture(stream, &graph);
  EXPECT_EQ(graph, nullptr);
  return result;
}

/// x = 2; y = x, on a stream of its own; x = 3. In `out`: x, y, copy of x.
void askForBytes(EmulatedGpu &gpu, uint8_t *out, StreamHandle stream,
                 StreamHandle side) {
  cuda::Address x = addressOf(out), y = x + 1, z = x + 2;
  EXPECT_SUCCESS(gpu.api.fill8(x, out[3] + 2, 1, stream));
  gpu.order(stream, side);
  EXPECT_SUCCESS(gpu.api.copy(y, x, 1, side));
  gpu.order(side, stream);
  EXPECT_SUCCESS(gpu.api.fill8(x, 3, 1, stream));
  EXPECT_SUCCESS(gpu.api.copy(z, x, 1, stream));
}

TEST(EmulatedGraphs, LaunchesDoWhatTheStreamsWould) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EmulatedGpu gpu({1, seed});
    StreamHandle stream = gpu.stream(), side = gpu.stream();
    auto *direct = gpu.allocateHost<uint8_t>(4);
    auto *replayed = gpu.allocateHost<uint8_t>(4);
    askForBytes(gpu, direct, stream, side);
    begin(gpu, stream);
    askForBytes(gpu, replayed, stream, side);
    cuda::GraphExecHandle executable = end(gpu, stream);
    EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
    EXPECT_EQ(std::vector(direct, direct + 4),
              (std::vector<uint8_t>{3, 2, 3, 0}));
    EXPECT_EQ(std::vector(replayed, replayed + 4), std::vector<uint8_t>(4));
    for (int launch = 0; launch < 2; ++launch) {
      EXPECT_SUCCESS(gpu.api.fill8(addressOf(replayed), 0, 4, stream));
      EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
      EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
      EXPECT_EQ(std::vector(replayed, replayed + 4),
                std::vector(direct, direct + 4));
    }
    EXPECT_SUCCESS(gpu.api.destroyGraphExec(executable));
    EXPECT_EQ(gpu.api.launchGraph(executable, stream), simt::kInvalidHandle);
  }
}

/// Arguments are those of the time of capture.
TEST(EmulatedGraphs, LaunchesKeepTheOrderOfTheStream) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  begin(gpu, stream);
  for (int32_t value : {1, 2})
    gpu.append(value, stream);
  cuda::GraphExecHandle executable = end(gpu, stream);
  gpu.append(0, stream);
  EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
  gpu.append(3, stream);
  EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
  EXPECT_EQ(gpu.log(), (std::vector<int32_t>{0, 1, 2, 3, 1, 2}));
}

/// Two branches of two nodes between a first and a last one.
TEST(EmulatedGraphs, OnlyDependenciesFixTheOrder) {
  std::set<std::vector<int32_t>> orders;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    EmulatedGpu gpu({1, seed});
    StreamHandle stream = gpu.stream(), side = gpu.stream();
    begin(gpu, stream);
    gpu.append(0, stream);
    gpu.order(stream, side);
    for (int32_t value : {1, 2})
      gpu.append(value, stream);
    for (int32_t value : {11, 12})
      gpu.append(value, side);
    gpu.order(side, stream);
    gpu.append(20, stream);
    EXPECT_SUCCESS(gpu.api.launchGraph(end(gpu, stream), stream));
    std::vector<int32_t> log = gpu.log();
    ASSERT_EQ(log.size(), 6u);
    auto place = [&](int32_t value) {
      return std::find(log.begin(), log.end(), value) - log.begin();
    };
    EXPECT_EQ(log.front(), 0);
    EXPECT_LT(place(1), place(2));
    EXPECT_LT(place(11), place(12));
    EXPECT_EQ(log.back(), 20);
    orders.insert(log);
  }
  EXPECT_EQ(orders.size(), 6u); // all that there are
}

/// On two streams that nothing else orders.
TEST(EmulatedGraphs, LaunchesOfOneExecutableFollowEachOther) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EmulatedGpu gpu({1, seed});
    StreamHandle stream = gpu.stream(), other = gpu.stream();
    begin(gpu, stream);
    for (int32_t value : {1, 2, 3})
      gpu.append(value, stream);
    cuda::GraphExecHandle executable = end(gpu, stream);
    EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
    EXPECT_SUCCESS(gpu.api.launchGraph(executable, other));
    EXPECT_EQ(gpu.log(), (std::vector<int32_t>{1, 2, 3, 1, 2, 3}));
  }
}

TEST(EmulatedGraphs, BranchesMustBeJoined) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream(), side = gpu.stream();
  begin(gpu, stream);
  gpu.append(0, stream);
  gpu.order(stream, side);
  gpu.append(1, side);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureUnjoined);
  gpu.append(2, side); // captures no more
  EXPECT_EQ(gpu.log(), std::vector<int32_t>{2});
}

TEST(EmulatedGraphs, TheHostCannotWaitInACapture) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  begin(gpu, stream);
  EXPECT_EQ(gpu.api.synchronizeStream(stream), simt::kCaptureUnsupported);
  EXPECT_EQ(gpu.launch("nothing", {}, stream), simt::kCaptureInvalidated);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);

  cuda::EventHandle event = gpu.event();
  begin(gpu, stream);
  EXPECT_SUCCESS(gpu.api.recordEvent(event, stream));
  EXPECT_EQ(gpu.api.synchronizeEvent(event), simt::kCapturedEvent);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);

  begin(gpu, stream);
  cuda::Address address = 0;
  EXPECT_EQ(gpu.api.allocate(&address, 1), simt::kCaptureUnsupported);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);
}

TEST(EmulatedGraphs, GraphsHaveNoGraphs) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  begin(gpu, stream);
  cuda::GraphExecHandle executable = end(gpu, stream);
  EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream)); // has no nodes
  begin(gpu, stream);
  EXPECT_EQ(gpu.api.launchGraph(executable, stream), simt::kCaptureUnsupported);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);
}

TEST(EmulatedGraphs, OtherThreadsMayWaitDuringACapture) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream(), other = gpu.stream();
  begin(gpu, stream);
  gpu.append(1, stream);
  std::thread([&] {
    EXPECT_SUCCESS(gpu.api.setContext(gpu.context));
    gpu.append(0, other);
    EXPECT_SUCCESS(gpu.api.synchronizeStream(other));
    cuda::Address address = 0;
    EXPECT_SUCCESS(gpu.api.allocate(&address, 1));
  }).join();
  EXPECT_SUCCESS(gpu.api.launchGraph(end(gpu, stream), stream));
  EXPECT_EQ(gpu.log(), (std::vector<int32_t>{0, 1}));
}

/// The main thread begins, three others capture, one of which joins and ends.
TEST(EmulatedGraphs, SeveralThreadsCapture) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EmulatedGpu gpu({1, seed});
    StreamHandle stream = gpu.stream();
    std::vector<StreamHandle> sides = {gpu.stream(), gpu.stream()};
    begin(gpu, stream);
    auto onThread = [&](const std::function<void()> &body) {
      std::thread([&] {
        EXPECT_SUCCESS(gpu.api.setContext(gpu.context));
        body();
      }).join();
    };
    for (int32_t side : {0, 1})
      gpu.order(stream, sides[side]);
    for (int32_t side : {0, 1})
      onThread([&] { gpu.append(1 + side, sides[side]); });
    cuda::GraphExecHandle executable = nullptr;
    onThread([&] {
      for (StreamHandle side : sides)
        gpu.order(side, stream);
      gpu.append(3, stream);
      executable = end(gpu, stream);
    });
    EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
    std::vector<int32_t> log = gpu.log();
    ASSERT_EQ(log.size(), 3u);
    EXPECT_EQ(log[0] + log[1], 3);
    EXPECT_EQ(log[2], 3);
  }
}

/// One of two threads that capture forgets to join its stream.
TEST(EmulatedGraphs, StreamsOfAllThreadsMustBeJoined) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream(), side = gpu.stream();
  begin(gpu, stream);
  gpu.order(stream, side);
  std::thread([&] {
    EXPECT_SUCCESS(gpu.api.setContext(gpu.context));
    gpu.append(0, side);
  }).join();
  gpu.append(1, stream);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureUnjoined);
}

/// Stricter than NVIDIA's driver, which lets threads of the relaxed mode wait.
TEST(EmulatedGraphs, NoThreadThatCapturesWaits) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream(), side = gpu.stream();
  cuda::Address address = 0;
  begin(gpu, stream);
  gpu.order(stream, side);
  std::thread([&] {
    EXPECT_SUCCESS(gpu.api.setContext(gpu.context));
    EXPECT_SUCCESS(gpu.api.allocate(&address, 1)); // has captured nothing
    gpu.append(0, side);
    EXPECT_EQ(gpu.api.allocate(&address, 1), simt::kCaptureUnsupported);
  }).join();
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);
}

TEST(EmulatedGraphs, CapturesAreApartFromOtherWork) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream(), other = gpu.stream();
  cuda::EventHandle event = gpu.event();
  EXPECT_SUCCESS(gpu.api.recordEvent(event, other));
  begin(gpu, stream);
  EXPECT_EQ(gpu.api.waitEvent(stream, event, 0), simt::kCaptureIsolation);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);

  begin(gpu, stream);
  begin(gpu, other);
  EXPECT_SUCCESS(gpu.api.recordEvent(event, other));
  EXPECT_EQ(gpu.api.waitEvent(stream, event, 0), simt::kCaptureMerge);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);
  EXPECT_EQ(endResult(gpu, other), simt::kCaptureInvalidated);

  begin(gpu, stream);
  EXPECT_EQ(gpu.api.beginCapture(stream, cuda::kRelaxedCapture),
            simt::kIllegalState);
  gpu.order(stream, other);
  EXPECT_EQ(endResult(gpu, other), simt::kCaptureUnmatched);
  EXPECT_EQ(endResult(gpu, stream), simt::kCaptureInvalidated);
  EXPECT_EQ(endResult(gpu, stream), simt::kIllegalState);
}

TEST(EmulatedGraphs, EventsOfAnEndedCaptureAreErrors) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  cuda::EventHandle event = gpu.event();
  begin(gpu, stream);
  EXPECT_SUCCESS(gpu.api.recordEvent(event, stream));
  end(gpu, stream);
  EXPECT_EQ(gpu.api.queryEvent(event), simt::kCapturedEvent);
  EXPECT_EQ(gpu.api.waitEvent(stream, event, 0), simt::kCapturedEvent);
  EXPECT_SUCCESS(gpu.api.recordEvent(event, stream));
  EXPECT_SUCCESS(gpu.api.synchronizeEvent(event));
}

} // namespace
