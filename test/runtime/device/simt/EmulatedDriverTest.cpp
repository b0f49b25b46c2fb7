// SPDX-License-Identifier: Apache-2.0
//
// Contexts, memory, copies, kernels and failures of the emulated driver.
#include "runtime/Error.h"
#include "runtime/device/Context.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/simt/EmulatedProducts.h"
#include "test/runtime/device/simt/EmulatedGpu.h"

#include <cstring>
#include <numeric>
#include <thread>

using namespace rota;
using namespace rota::test;
using cuda::StreamHandle;

namespace {

TEST(EmulatedDriver, HasAllFunctions) {
  const cuda::DriverApi &api = simt::emulatedDriver();
#define X(member, symbol, parameters) EXPECT_NE(api.member, nullptr) << symbol;
  ROTA_CUDA_DRIVER_FUNCTIONS(X)
#undef X
  EXPECT_NE(api.failureReport, nullptr);
}

TEST(EmulatedDriver, OneDevice) {
  EmulatedGpu gpu;
  int count = 0, device = -1, value = -1;
  EXPECT_SUCCESS(gpu.api.deviceCount(&count));
  EXPECT_EQ(count, 1);
  EXPECT_SUCCESS(gpu.api.device(&device, 0));
  EXPECT_EQ(gpu.api.device(&value, 1), simt::kInvalidDevice);
  char name[64];
  EXPECT_SUCCESS(gpu.api.deviceName(name, sizeof name, device));
  EXPECT_STREQ(name, "emulated GPU");
  EXPECT_SUCCESS(gpu.api.deviceName(name, 4, device));
  EXPECT_STREQ(name, "emu");
  EXPECT_SUCCESS(
      gpu.api.deviceAttribute(&value, cuda::kCapabilityMajor, device));
  EXPECT_EQ(value, 0);
}

TEST(EmulatedDriver, EachThreadNeedsAContext) {
  EmulatedGpu gpu;
  std::thread([&] {
    StreamHandle stream = nullptr;
    EXPECT_EQ(gpu.api.createStream(&stream, cuda::kNonBlockingStream),
              simt::kInvalidContext);
    EXPECT_STREQ(gpu.api.failureReport(), "");
    EXPECT_THROW(simt::enqueueHost(nullptr, {"", {}, [] {}}), RunError);
    EXPECT_SUCCESS(gpu.api.setContext(gpu.context));
    EXPECT_SUCCESS(gpu.api.createStream(&stream, cuda::kNonBlockingStream));
  }).join();
}

TEST(EmulatedDriver, TheLastReleaseEndsTheContext) {
  cuda::ContextHandle ended;
  {
    EmulatedGpu gpu;
    ended = gpu.context;
    cuda::ContextHandle again = nullptr;
    EXPECT_SUCCESS(gpu.api.retainContext(&again, 0));
    EXPECT_EQ(again, ended);
    EXPECT_SUCCESS(gpu.api.releaseContext(0));
    gpu.append(0, gpu.stream());
    EXPECT_EQ(gpu.log().size(), 1u);
    EXPECT_THROW(simt::setEmulatedDriverOptions({}), RunError);
  }
  EmulatedGpu gpu;
  EXPECT_NE(gpu.context, ended);
  EXPECT_EQ(gpu.api.setContext(ended), simt::kInvalidContext);
}

TEST(EmulatedDriver, MemoryHasALimit) {
  EmulatedGpu gpu({1, 0, 1 << 20});
  size_t before = 0, free = 0, total = 0;
  EXPECT_SUCCESS(gpu.api.memoryInfo(&before, &total));
  EXPECT_EQ(total, size_t(1) << 20);
  cuda::Address first = 0, second = 0;
  EXPECT_EQ(gpu.api.allocate(&first, before + 1), cuda::kOutOfMemory);
  EXPECT_SUCCESS(gpu.api.allocate(&first, 1000));
  EXPECT_SUCCESS(gpu.api.memoryInfo(&free, &total));
  EXPECT_EQ(free, before - 1000);
  EXPECT_EQ(gpu.api.allocate(&second, before), cuda::kOutOfMemory);
  EXPECT_EQ(gpu.api.free(first + 64), cuda::kInvalidValue);
  EXPECT_SUCCESS(gpu.api.free(first));
  EXPECT_EQ(gpu.api.free(first), cuda::kInvalidValue);
  EXPECT_SUCCESS(gpu.api.allocate(&second, before));
  EXPECT_EQ(gpu.api.allocate(&first, 0), cuda::kInvalidValue);
}

TEST(EmulatedDriver, FreeingWaitsForTheWork) {
  EmulatedGpu gpu;
  auto *device = gpu.allocate<uint8_t>(1 << 20);
  StreamHandle stream = gpu.stream();
  for (int i = 0; i < 20; ++i)
    EXPECT_SUCCESS(gpu.api.fill8(addressOf(device), 1, 1 << 20, stream));
  EXPECT_SUCCESS(gpu.api.free(addressOf(device)));
  EXPECT_EQ(gpu.api.free(addressOf(device)), cuda::kInvalidValue);
}

TEST(EmulatedDriver, FillsAndCopies) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  auto *device = gpu.allocate<uint32_t>(8);
  auto *host = gpu.allocateHost<uint32_t>(8);
  cuda::Address to = addressOf(device);
  EXPECT_SUCCESS(gpu.api.fill8(to + 4, 0x01, 24, stream));
  EXPECT_SUCCESS(gpu.api.fill8(to + 9, 0xFF, 2, stream));
  EXPECT_SUCCESS(gpu.api.fill8(0, 0xFF, 0, stream));
  EXPECT_SUCCESS(gpu.api.copy(addressOf(host), to, 32, stream));
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
  EXPECT_EQ(std::vector(host, host + 8),
            (std::vector<uint32_t>{0, 0x01010101, 0x01FFFF01, 0x01010101,
                                   0x01010101, 0x01010101, 0x01010101, 0}));
  EXPECT_EQ(gpu.api.fill8(to, 0, 33, stream), cuda::kInvalidValue);
  EXPECT_EQ(gpu.api.copy(to, addressOf(host), 33, stream), cuda::kInvalidValue);
}

TEST(EmulatedDriver, FreesInTheOrderOfAStream) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  auto *back = gpu.allocateHost<uint8_t>(2);
  size_t before = 0, after = 0, total = 0;
  EXPECT_SUCCESS(gpu.api.memoryInfo(&before, &total));
  cuda::Address address = 0;
  EXPECT_SUCCESS(gpu.api.allocateInStream(&address, 2, stream));
  EXPECT_SUCCESS(gpu.api.fill8(address, 7, 2, stream));
  EXPECT_SUCCESS(gpu.api.copy(addressOf(back), address, 2, stream));
  EXPECT_SUCCESS(gpu.api.freeInStream(address, stream));
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
  EXPECT_EQ(std::vector(back, back + 2), (std::vector<uint8_t>{7, 7}));
  EXPECT_SUCCESS(gpu.api.memoryInfo(&after, &total));
  EXPECT_EQ(after, before);
  EXPECT_EQ(gpu.api.freeInStream(address, stream), cuda::kInvalidValue);
}

TEST(EmulatedDriver, BlocksOnSeveralThreads) {
  EmulatedGpu gpu({4, 0});
  constexpr int kBlocks = 200, kThreads = 64;
  auto *device = gpu.allocate<int32_t>(kBlocks * kThreads);
  auto *host = gpu.allocateHost<int32_t>(kBlocks * kThreads);
  StreamHandle stream = gpu.stream();
  void *arguments[] = {&device};
  EXPECT_SUCCESS(gpu.api.launch(gpu.function("number"), kBlocks, 1, 1, kThreads,
                                1, 1, 0, stream, arguments, nullptr));
  EXPECT_SUCCESS(gpu.api.copy(addressOf(host), addressOf(device),
                              4 * kBlocks * kThreads, stream));
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
  for (int i = 0; i < kBlocks * kThreads; ++i)
    ASSERT_EQ(host[i], i);
}

TEST(EmulatedDriver, KernelsReadPinnedMemory) {
  EmulatedGpu gpu;
  auto **table = gpu.allocateHost<int32_t *>(2);
  auto *value = gpu.allocateHost<int32_t>(1);
  table[1] = value;
  StreamHandle stream = gpu.stream();
  int32_t index = 1, number = 7;
  EXPECT_SUCCESS(
      gpu.launch("store_by_table", {&table, &index, &number}, stream));
  index = number = 0; // the launch has copies
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
  EXPECT_EQ(*value, 7);
}

TEST(EmulatedDriver, FunctionsAreFoundByName) {
  EmulatedGpu gpu;
  const RotaSimtKernel *const none[] = {nullptr};
  cuda::ModuleHandle module = nullptr;
  cuda::FunctionHandle function = nullptr;
  EXPECT_SUCCESS(gpu.api.loadModule(&module, none, 0, nullptr, nullptr));
  EXPECT_EQ(gpu.api.moduleFunction(&function, module, "store"),
            cuda::kNotFound);
  EXPECT_SUCCESS(gpu.api.unloadModule(module));
  EXPECT_EQ(gpu.api.moduleFunction(&function, module, "store"),
            simt::kInvalidHandle);
}

/// The kernel has 1024 bytes of fixed size.
TEST(EmulatedDriver, MuchSharedMemoryNeedsLeave) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  cuda::FunctionHandle kernel = gpu.function("nothing");
  auto launch = [&](unsigned sharedBytes) {
    return gpu.api.launch(kernel, 1, 1, 1, 1, 1, 1, sharedBytes, stream,
                          nullptr, nullptr);
  };
  auto give = [&](int bytes) {
    return gpu.api.setFunctionAttribute(kernel, cuda::kMostDynamicSharedBytes,
                                        bytes);
  };
  EXPECT_SUCCESS(launch(47 << 10));
  EXPECT_EQ(launch((47 << 10) + 1), cuda::kInvalidValue);
  EXPECT_EQ(give((226 << 10) + 1), cuda::kInvalidValue);
  EXPECT_SUCCESS(give(226 << 10));
  EXPECT_SUCCESS(launch(226 << 10));
  EXPECT_EQ(launch((226 << 10) + 1), cuda::kInvalidValue);
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
}

TEST(EmulatedDriver, LaunchesHaveLimits) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  auto launch = [&](std::array<unsigned, 3> grid, std::array<unsigned, 3> block,
                    void **arguments = nullptr) {
    return gpu.api.launch(gpu.function(arguments ? "store" : "nothing"),
                          grid[0], grid[1], grid[2], block[0], block[1],
                          block[2], 0, stream, arguments, nullptr);
  };
  EXPECT_SUCCESS(launch({2, 1, 1}, {32, 32, 1}));
  for (std::array<unsigned, 3> grid :
       {std::array{0u, 1u, 1u}, {1u << 31, 1, 1}, {1, 65536, 1}, {1, 1, 65536}})
    EXPECT_EQ(launch(grid, {1, 1, 1}), cuda::kInvalidValue);
  for (std::array<unsigned, 3> block :
       {std::array{0u, 1u, 1u}, {32, 32, 2}, {1, 1, 65}, {1u << 31, 2, 1}})
    EXPECT_EQ(launch({1, 1, 1}, block), cuda::kInvalidValue);
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
}

TEST(EmulatedDriver, AFailureStays) {
  {
    EmulatedGpu gpu;
    StreamHandle stream = gpu.stream(), other = gpu.stream();
    EXPECT_STREQ(gpu.api.failureReport(), "");
    auto **table = gpu.allocateHost<int32_t *>(1);
    auto *value = gpu.allocate<int32_t>(1);
    table[0] = value + 1;
    int32_t index = 0;
    EXPECT_SUCCESS(
        gpu.launch("store_by_table", {&table, &index, &index}, stream));
    bool dropped = true;
    simt::enqueueHost(stream, {"", {}, [&] { dropped = false; }});
    gpu.order(stream, other);
    EXPECT_EQ(gpu.api.synchronizeStream(other), cuda::kLaunchFailed);
    EXPECT_STREQ(gpu.api.failureReport(),
                 "kernel 'store_by_table', block (0, 0, 0), thread 0, k.cpp:2 "
                 "(store): out of bounds: writes 4 bytes at byte 4 of 'device "
                 "memory', which has 4 bytes");
    EXPECT_EQ(gpu.api.synchronizeStream(stream), cuda::kLaunchFailed);
    EXPECT_EQ(gpu.api.free(addressOf(value)), cuda::kLaunchFailed);
    EXPECT_THROW(simt::enqueueHost(stream, {"", {}, [] {}}), RunError);
    EXPECT_TRUE(dropped);
  }
  EmulatedGpu gpu;
  EXPECT_STREQ(gpu.api.failureReport(), "");
  gpu.append(0, gpu.stream());
  EXPECT_EQ(gpu.log().size(), 1u);
}

TEST(EmulatedDriver, FailureOfTheHostsWork) {
  EmulatedGpu gpu;
  StreamHandle stream = gpu.stream();
  simt::enqueueHost(stream, {"", {}, [] { throw RunError("no such thing"); }});
  EXPECT_EQ(gpu.api.synchronizeStream(stream), cuda::kLaunchFailed);
  EXPECT_STREQ(gpu.api.failureReport(), "no such thing");
}

TEST(EmulatedDriver, WordsForErrors) {
  const cuda::DriverApi &api = simt::emulatedDriver();
  const char *name = nullptr, *text = nullptr;
  EXPECT_SUCCESS(api.errorName(cuda::kOutOfMemory, &name));
  EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_SUCCESS(api.errorText(cuda::kOutOfMemory, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(api.errorName(-1, &name), cuda::kInvalidValue);
}

/// [2, 3] by [3, 4], asked for in a capture too.
TEST(EmulatedProducts, AreThoseOfTheCpu) {
  EmulatedGpu gpu({2, 0});
  StreamHandle stream = gpu.stream();
  auto *a = gpu.allocateHost<float>(6), *b = gpu.allocateHost<float>(12);
  auto *c = gpu.allocateHost<float>(8);
  std::iota(a, a + 6, 0.5f);
  std::iota(b, b + 12, -2.25f);
  RotaGemm gemm = {1, 2, 4, 3, 3, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<float> expected(8);
  RotaContext host;
  multiplyOnCpu(&host, gemm, a, b, expected.data());
  simt::EmulatedProducts products;
  products.multiply(gemm, a, b, c, nullptr, 0, stream);
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
  EXPECT_EQ(std::vector(c, c + 8), expected);

  EXPECT_SUCCESS(gpu.api.beginCapture(stream, cuda::kRelaxedCapture));
  EXPECT_SUCCESS(gpu.api.fill8(addressOf(c), 0, 32, stream));
  products.multiply(gemm, a, b, c, nullptr, 0, stream);
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle executable = nullptr;
  EXPECT_SUCCESS(gpu.api.endCapture(stream, &graph));
  EXPECT_SUCCESS(gpu.api.instantiateGraph(&executable, graph, 0));
  EXPECT_SUCCESS(gpu.api.launchGraph(executable, stream));
  EXPECT_SUCCESS(gpu.api.synchronizeStream(stream));
  EXPECT_EQ(std::vector(c, c + 8), expected);

  gemm.lda = 2;
  products.multiply(gemm, a, b, c, nullptr, 0, stream);
  EXPECT_EQ(gpu.api.synchronizeStream(stream), cuda::kLaunchFailed);
  EXPECT_STREQ(gpu.api.failureReport(),
               "gemm of 2 x 4 x 3, f32 by f32 to f32: expected an A row "
               "distance of at least 3, got 2");
}

} // namespace
