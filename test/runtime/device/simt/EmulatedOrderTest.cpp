// SPDX-License-Identifier: Apache-2.0
//
// Mistakes of a host that work in the order in which the emulated driver runs
// operations, and are reported nevertheless, for every seed.
#include "runtime/device/simt/EmulatedProducts.h"
#include "test/runtime/device/simt/EmulatedGpu.h"

#include <functional>
#include <mutex>

using namespace rota;
using namespace rota::test;
using cuda::StreamHandle;

namespace {

constexpr uint64_t kSeeds = 10;

void store(EmulatedGpu &gpu, int32_t *place, StreamHandle stream) {
  int32_t value = 1;
  EXPECT_SUCCESS(gpu.launch("store", {&place, &value}, stream));
}

void move(EmulatedGpu &gpu, int32_t *to, int32_t *from, StreamHandle stream) {
  EXPECT_SUCCESS(gpu.launch("move", {&to, &from}, stream));
}

/// For each seed: what a host asks for on two streams, and places of the GPU.
void forSeeds(const std::function<void(EmulatedGpu &, StreamHandle,
                                       StreamHandle, int32_t *)> &body) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    simt::EmulatedDriverOptions options;
    options.seed = seed;
    EmulatedGpu gpu(options);
    StreamHandle first = gpu.stream(), second = gpu.stream();
    body(gpu, first, second, gpu.allocate<int32_t>(64));
  }
}

/// The report once both streams have been waited for.
std::string reportOf(EmulatedGpu &gpu, StreamHandle first,
                     StreamHandle second) {
  gpu.reportOf(first);
  return gpu.reportOf(second);
}

void expectPart(const std::string &report, const std::string &part) {
  EXPECT_NE(report.find(part), std::string::npos) << report;
}

TEST(EmulatedOrder, KernelsOnTwoStreams) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    store(gpu, places + 5, first);
    move(gpu, places, places + 5, second);
    std::string report = reportOf(gpu, first, second);
    const char *readsLate =
        "kernel 'move', block (0, 0, 0), thread 0, k.cpp:1 (load): unordered: "
        "on stream 2, reads bytes 20 to 23 of 'device memory', which kernel "
        "'store' on stream 1 writes; neither comes first";
    const char *writesLate =
        "kernel 'store', block (0, 0, 0), thread 0, k.cpp:2 (store): "
        "unordered: on stream 1, writes bytes 20 to 23 of 'device memory', "
        "which kernel 'move' on stream 2 reads; neither comes first";
    EXPECT_TRUE(report == readsLate || report == writesLate) << report;
  });
}

TEST(EmulatedOrder, AnEventOrdersThem) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    store(gpu, places + 5, first);
    gpu.order(first, second);
    move(gpu, places, places + 5, second);
    EXPECT_EQ(reportOf(gpu, first, second), "");
  });
}

/// An event of a third stream that waits for the first one.
TEST(EmulatedOrder, OrderPassesThroughStreams) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    StreamHandle between = gpu.stream();
    store(gpu, places, first);
    gpu.order(first, between);
    gpu.order(between, second);
    store(gpu, places, second);
    EXPECT_EQ(reportOf(gpu, first, second), "");
  });
}

/// An event that is recorded before the operation orders nothing after it.
TEST(EmulatedOrder, AnEventThatIsRecordedTooEarly) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    gpu.order(first, second);
    store(gpu, places, first);
    store(gpu, places, second);
    EXPECT_NE(reportOf(gpu, first, second), "");
  });
}

TEST(EmulatedOrder, AWaitOfTheHostOrdersThem) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    cuda::EventHandle done = gpu.event();
    store(gpu, places, first);
    EXPECT_SUCCESS(gpu.api.recordEvent(done, first));
    EXPECT_SUCCESS(gpu.api.synchronizeEvent(done));
    store(gpu, places, second);
    EXPECT_SUCCESS(gpu.api.synchronizeStream(second));
    store(gpu, places, first);
    EXPECT_EQ(reportOf(gpu, first, second), "");
  });
}

TEST(EmulatedOrder, ReadsNeedNoOrder) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    move(gpu, places + 16, places, first);
    move(gpu, places + 32, places, second);
    EXPECT_EQ(reportOf(gpu, first, second), "");
  });
}

/// A write that comes after one of two readers.
TEST(EmulatedOrder, AllReadersComeFirst) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    StreamHandle third = gpu.stream();
    move(gpu, places + 16, places, first);
    move(gpu, places + 32, places, second);
    gpu.order(first, third);
    store(gpu, places, third);
    std::string report = reportOf(gpu, second, third);
    expectPart(report, "on stream 2");
    expectPart(report, "on stream 3");
  });
}

TEST(EmulatedOrder, CopiesAndFills) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(places + 2), 7, 64, first));
    EXPECT_SUCCESS(
        gpu.api.copy(addressOf(places + 40), addressOf(places), 64, second));
    std::string report = reportOf(gpu, first, second);
    EXPECT_TRUE(
        report ==
            "copy of 64 bytes on stream 2: reads bytes 8 to 63 of 'device "
            "memory', which fill of 64 bytes on stream 1 writes; neither "
            "comes first" ||
        report == "fill of 64 bytes on stream 1: writes bytes 8 to 63 of "
                  "'device memory', which copy of 64 bytes on stream 2 reads; "
                  "neither comes first")
        << report;
  });
}

/// Neighbours share nothing.
TEST(EmulatedOrder, PartsOfABufferAreApart) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(places), 7, 6, first));
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(places) + 6, 7, 40, second));
    EXPECT_EQ(reportOf(gpu, first, second), "");
  });
}

/// Rows of 2 of 4 columns.
TEST(EmulatedOrder, Products) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    RotaGemm gemm = {1, 2, 2, 2, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    auto *a = reinterpret_cast<float *>(places), *b = a + 16, *c = a + 32;
    simt::EmulatedProducts products;
    products.multiply(gemm, a, b, c, nullptr, 0, first);
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(c + 2), 0, 8, second));
    EXPECT_EQ(reportOf(gpu, first, second), "");
    products.multiply(gemm, a, b, c, nullptr, 0, first);
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(c + 5), 0, 4, second));
    expectPart(reportOf(gpu, first, second),
               "product of 2 x 2 x 2 on stream 1");
  });
}

/// Two products in one workspace.
TEST(EmulatedOrder, WorkspacesOfProducts) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    RotaGemm gemm = {1, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    auto *a = reinterpret_cast<float *>(places), *b = a + 8;
    simt::EmulatedProducts products;
    products.multiply(gemm, a, b, a + 16, a + 32, 128, first);
    products.multiply(gemm, a, b, a + 24, a + 32, 128, second);
    expectPart(reportOf(gpu, first, second), "bytes 128 to 255");
  });
}

TEST(EmulatedOrder, ReleasesInAStream) {
  forSeeds(
      [](EmulatedGpu &gpu, StreamHandle first, StreamHandle second, int32_t *) {
        cuda::Address address = 0;
        EXPECT_SUCCESS(gpu.api.allocateInStream(&address, 64, first));
        EXPECT_SUCCESS(gpu.api.fill8(address, 0, 64, second));
        EXPECT_SUCCESS(gpu.api.freeInStream(address, first));
        EXPECT_NE(reportOf(gpu, first, second), "");
      });
}

/// A graph of a kernel, one on a side branch, and a last one, which comes after
/// the side branch if `isOrdered`.
cuda::GraphExecHandle capture(EmulatedGpu &gpu, StreamHandle first,
                              StreamHandle second, int32_t *places,
                              bool isOrdered) {
  EXPECT_SUCCESS(gpu.api.beginCapture(first, cuda::kRelaxedCapture));
  store(gpu, places, first);
  gpu.order(first, second);
  move(gpu, places + 16, places, second);
  if (isOrdered)
    gpu.order(second, first);
  store(gpu, places, first);
  if (!isOrdered)
    gpu.order(second, first);
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle executable = nullptr;
  EXPECT_SUCCESS(gpu.api.endCapture(first, &graph));
  EXPECT_SUCCESS(gpu.api.instantiateGraph(&executable, graph, 0));
  return executable;
}

/// Launches of one graph follow each other, on whatever streams, and what comes
/// after them comes after all of the graph.
TEST(EmulatedOrder, LaunchesOfGraphs) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    cuda::GraphExecHandle executable =
        capture(gpu, first, second, places, /*isOrdered=*/true);
    for (StreamHandle stream : {first, second})
      EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
    gpu.order(second, first);
    store(gpu, places + 16, first);
    EXPECT_EQ(reportOf(gpu, first, second), "");
  });
}

TEST(EmulatedOrder, BranchesOfGraphs) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    cuda::GraphExecHandle executable =
        capture(gpu, first, second, places, /*isOrdered=*/false);
    EXPECT_SUCCESS(gpu.api.launchGraph(executable, first));
    std::string report = reportOf(gpu, first, second);
    expectPart(report, "on branch 1 of graph 1");
    expectPart(report, "on branch 2 of graph 1");
  });
}

/// A launch orders nothing on another stream.
TEST(EmulatedOrder, StreamsBesideGraphs) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    cuda::GraphExecHandle executable =
        capture(gpu, first, second, places, /*isOrdered=*/true);
    EXPECT_SUCCESS(gpu.api.launchGraph(executable, first));
    move(gpu, places + 32, places + 16, second);
    std::string report = reportOf(gpu, first, second);
    expectPart(report, "on branch 2 of graph 1");
    expectPart(report, "on stream 2");
  });
}

TEST(EmulatedOrder, FreshMemoryIsNotZero) {
  EmulatedGpu gpu;
  cuda::Address address = 0;
  EXPECT_SUCCESS(gpu.api.allocate(&address, 8));
  auto *host = gpu.allocateHost<uint64_t>(1);
  EXPECT_SUCCESS(gpu.api.copy(addressOf(host), address, 8, nullptr));
  EXPECT_EQ(gpu.reportOf(nullptr), "");
  EXPECT_EQ(*host, ~uint64_t(0));
}

TEST(EmulatedOrder, SourcesOfCopiesStayAsTheyAre) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle,
              int32_t *places) {
    auto *host = gpu.allocateHost<int32_t>(4);
    std::mutex mutex;
    std::unique_lock held(mutex);
    simt::enqueueHost(first, {"", {}, [&] { std::lock_guard lock(mutex); }});
    EXPECT_SUCCESS(gpu.api.copy(addressOf(places), addressOf(host), 16, first));
    host[2] = 1;
    held.unlock();
    EXPECT_EQ(gpu.reportOf(first),
              "copy of 16 bytes on stream 1: expected its source as it was "
              "when the copy was asked for, got a change by the host at byte 8 "
              "of 16");
  });
}

/// What the GPU itself writes there is no mistake.
TEST(EmulatedOrder, SourcesThatTheGpuWrites) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle second,
              int32_t *places) {
    auto *host = gpu.allocateHost<int32_t>(4);
    for (int32_t turn = 0; turn < 3; ++turn) {
      EXPECT_SUCCESS(gpu.api.fill8(addressOf(places), turn, 16, first));
      EXPECT_SUCCESS(
          gpu.api.copy(addressOf(host), addressOf(places), 16, first));
      EXPECT_SUCCESS(
          gpu.api.copy(addressOf(places + 8), addressOf(host), 16, first));
    }
    EXPECT_EQ(reportOf(gpu, first, second), "");
    EXPECT_EQ(places[8], 0x02020202);
  });
}

TEST(EmulatedOrder, TheHostWritesNoDestination) {
  forSeeds([](EmulatedGpu &gpu, StreamHandle first, StreamHandle,
              int32_t *places) {
    auto *host = gpu.allocateHost<int32_t>(4);
    std::mutex mutex;
    std::unique_lock held(mutex);
    simt::enqueueHost(first, {"", {}, [&] { std::lock_guard lock(mutex); }});
    EXPECT_SUCCESS(gpu.api.copy(addressOf(host), addressOf(places), 16, first));
    EXPECT_EQ(host[0], -1);
    host[3] = 5;
    held.unlock();
    EXPECT_EQ(gpu.reportOf(first),
              "copy of 16 bytes on stream 1: expected its destination as it "
              "was when the copy was asked for, got a change by the host at "
              "byte 12 of 16");
  });
}

TEST(EmulatedOrder, PageableMemoryIsRefused) {
  EmulatedGpu gpu;
  auto *device = gpu.allocate<int32_t>(4);
  int32_t host[4] = {};
  EXPECT_EQ(gpu.api.copy(addressOf(device), addressOf(host), 16, nullptr),
            cuda::kInvalidValue);
  expectPart(gpu.api.failureReport(),
             "copy of 16 bytes: expected memory of the driver, got "
             "pageable memory at ");
}

TEST(EmulatedOrder, LaunchBounds) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  auto *places = gpu.allocate<int32_t>(2);
  int32_t *to = places, *from = places + 1;
  void *arguments[] = {&to, &from};
  EXPECT_SUCCESS(gpu.api.launch(gpu.function("move"), 1, 1, 1, 65, 1, 1, 0,
                                stream, arguments, nullptr));
  EXPECT_EQ(gpu.reportOf(stream),
            "kernel 'move': expected blocks of at most 64 threads, its launch "
            "bound, got 65");
}

} // namespace
