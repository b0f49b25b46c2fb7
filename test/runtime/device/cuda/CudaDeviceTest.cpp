// SPDX-License-Identifier: Apache-2.0
//
// A rank's device on the emulated driver, whose streams run in a random order
// that follows from a seed, as late as a host may find them.
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/Context.h"
#include "runtime/device/cuda/ServiceKernels.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/device/simt/Services.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace rota;

namespace {

constexpr int64_t kMiB = 1 << 20;

const char *const kSites[] = {"k.cpp:1 (load)", "k.cpp:2 (store)"};
const int32_t kBytes[] = {8};

/// (i32 *out): *out += 1.
void increment(void *const *arguments) {
  auto *place = *static_cast<int32_t **>(arguments[0]);
  rotaSimtRead(place, 4, 4, 1);
  int32_t value = *place + 1;
  rotaSimtWrite(place, 4, 4, &value, 2);
  *place = value;
}

const RotaSimtKernel kIncrement = {increment, "increment", kSites, 2, 0,
                                   1,         1,           kBytes, 0};

/// cuda::kNoteKernel; its 256 threads store the same value.
void note(void *const *arguments) {
  auto *place = *static_cast<int32_t **>(arguments[0]);
  const int32_t value = *static_cast<int32_t *>(arguments[1]);
  rotaSimtWrite(place, 4, 4, &value, 2);
  *place = value;
}
const int32_t kNoteBytes[] = {8, 4};
const RotaSimtKernel kNote = {note, "rota_note", kSites,     2, 0,
                              1,    2,           kNoteBytes, 0};
const RotaSimtKernel *const kImage[] = {&kIncrement, &kNote, nullptr};
const RotaGpuCode kCode = {ROTA_GPU_HOST, 0, kImage, sizeof kImage};
const RotaGpuLaunch kLaunch = {"increment", {1, 1, 1}, 1, 0, 1,
                               nullptr,     0,         0, 0, 0};

/// Code with a kernel for each name of ServiceKernels.h, none of which runs.
struct AllServices {
  std::vector<RotaSimtKernel> kernels;
  std::vector<const RotaSimtKernel *> image = {&kIncrement};
  RotaGpuCode code;

  AllServices() {
    for (const char *name : cuda::kServiceKernels) {
      kernels.push_back(kNote);
      kernels.back().name = name;
    }
    for (const RotaSimtKernel &kernel : kernels)
      image.push_back(&kernel);
    image.push_back(nullptr);
    code = {ROTA_GPU_HOST, 0, image.data(),
            static_cast<int64_t>(image.size() * sizeof image[0])};
  }
};

/// Notes the products that it prepares, and multiplies nothing.
struct NotedProducts : cuda::Products {
  std::vector<int64_t> rows; // m of each

  void multiply(const RotaGemm &, const void *, const void *, void *, void *,
                int64_t, cuda::StreamHandle) override {
    ADD_FAILURE() << "a product ran";
  }
  void prepare(const RotaGemm &gemm, const void *, const void *, void *, void *,
               int64_t, cuda::StreamHandle) override {
    rows.push_back(gemm.m);
  }
};

std::unique_ptr<cuda::CudaDevice> makeDevice(uint64_t seed,
                                             int64_t memoryBytes = 256 * kMiB) {
  simt::setEmulatedDriverOptions({1, seed, memoryBytes});
  return std::make_unique<cuda::CudaDevice>(
      std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0,
                                  std::span(&kCode, 1)),
      nullptr);
}

std::vector<char> randomBytes(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<char> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = random();
    std::memcpy(&bytes[i], &word, std::min(sizeof word, bytes.size() - i));
  }
  return bytes;
}

std::vector<char> readAll(Device &device, const void *place, int64_t bytes) {
  std::vector<char> host(static_cast<size_t>(bytes));
  device.read(place, host.data(), bytes);
  return host;
}

/// Asks for the kernel that increments the i32 at that place.
void askToIncrement(Device &device, void *place) {
  void *arguments[] = {place};
  device.launch(nullptr, &kLaunch, arguments, 1, 1);
}

int32_t readNumber(Device &device, const void *place) {
  int32_t value = 0;
  device.read(place, &value, sizeof value);
  return value;
}

template <typename Error, typename Body> std::string messageOf(Body &&body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

} // namespace

/// Around a piece of 4 MiB and the staging memory of 16 MiB.
TEST(CudaDevice, BytesOfAnySizeComeBack) {
  auto device = makeDevice(1);
  for (int64_t bytes :
       {int64_t(1), int64_t(7), 4 * kMiB - 1, 4 * kMiB, 4 * kMiB + 1, 16 * kMiB,
        16 * kMiB + 3, 37 * kMiB + 5}) {
    auto arena = device->makeArena(bytes);
    auto copy = device->makeArena(bytes + 1);
    std::vector<char> host = randomBytes(bytes, bytes);
    device->write(host.data(), arena->at(0), bytes);
    device->copy(nullptr, arena->at(0), copy->at(1), bytes);
    device->zero(nullptr, arena->at(bytes / 2), bytes - bytes / 2);
    EXPECT_TRUE(readAll(*device, copy->at(1), bytes) == host) << bytes;
    std::fill(host.begin() + bytes / 2, host.end(), 0);
    EXPECT_TRUE(readAll(*device, arena->at(0), bytes) == host) << bytes;
  }
}

/// The stream does nothing until 11 MiB were written. Then writes go through
/// the staging memory three times; sizes leave gaps of all kinds at its end.
TEST(CudaDevice, WritesWaitForStagingMemoryInUse) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    auto device = makeDevice(seed);
    auto arena = device->makeArena(60 * kMiB);
    std::vector<char> host = randomBytes(60 * kMiB, seed);
    std::atomic<int64_t> written = 0;
    simt::enqueueHost(device->computeStream(), {"a wait", {}, [&] {
                                                  while (written < 11 * kMiB)
                                                    std::this_thread::yield();
                                                }});
    std::mt19937_64 random(seed);
    while (written < 60 * kMiB) {
      int64_t bytes = 1 + static_cast<int64_t>(random() % (4 * kMiB));
      if (random() % 2)
        bytes = 1 + bytes % 1000;
      bytes = std::min(bytes, 60 * kMiB - written);
      device->write(&host[written], arena->at(written), bytes);
      written += bytes;
    }
    EXPECT_TRUE(readAll(*device, arena->at(0), 60 * kMiB) == host) << seed;
  }
}

TEST(CudaDevice, PreparesTasksWithoutTheirWork) {
  AllServices services;
  simt::setEmulatedDriverOptions({1, 1, 256 * kMiB});
  auto products = std::make_unique<NotedProducts>();
  NotedProducts &noted = *products;
  cuda::CudaDevice device(
      std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0,
                                  std::span(&services.code, 1)),
      std::move(products));
  auto arena = device.makeArena(64);
  auto run = [&](RotaContext *tasks, const RotaGpuLaunch &launch) {
    void *arguments[] = {arena->at(0)};
    rotaLaunch(tasks, &launch, arguments, 1, 1);
    RotaGemm gemm = {};
    gemm.m = 7;
    rotaGemm(tasks, &gemm, arena->at(0), arena->at(16), arena->at(32));
    rotaCopy(tasks, arena->at(0), arena->at(32), 16);
    rotaWaitCollective(
        tasks, rotaStartCollective(tasks, 0, arena->at(0), arena->at(32)));
  };
  int64_t launches = device.launches();
  device.prepareTasks(nullptr,
                      [&](RotaContext *tasks) { run(tasks, kLaunch); });
  EXPECT_EQ(noted.rows, std::vector<int64_t>{7});
  EXPECT_EQ(device.launches(), launches);
  EXPECT_EQ(readAll(device, arena->at(0), 64), std::vector<char>(64));
  // A function that the code has not, or the table's of a launch.
  RotaGpuLaunch missing = kLaunch, tabled = kLaunch;
  missing.name = "missing";
  tabled.table = &missing;
  for (const RotaGpuLaunch *launch : {&missing, &tabled}) {
    std::string message = messageOf<RunError>([&] {
      device.prepareTasks(nullptr,
                          [&](RotaContext *tasks) { run(tasks, *launch); });
    });
    EXPECT_NE(message.find("missing"), message.npos) << message;
  }
}

TEST(CudaDevice, AReadHasItsPlaceInTheOrder) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto device = makeDevice(seed);
    auto arena = device->makeArena(4);
    std::vector<std::unique_ptr<HostRead>> reads;
    for (int i = 0; i < 5; ++i) {
      reads.push_back(device->startRead(arena->at(0), 4));
      askToIncrement(*device, arena->at(0));
    }
    for (int32_t i : {4, 0, 2, 1, 3}) {
      int32_t value = -1;
      std::memcpy(&value, reads[i]->wait().data(), sizeof value);
      EXPECT_EQ(value, i);
    }
    reads.clear(); // their memory is used again
    int32_t last = -1;
    std::memcpy(&last, device->startRead(arena->at(0), 4)->wait().data(), 4);
    EXPECT_EQ(last, 5);
  }
}

/// Pieces have 2^20 elements, those of a thread 2^16.
TEST(CudaDevice, HostLoopsTakeEachElementOnce) {
  auto device = makeDevice(3);
  for (int64_t count : {0, 1, 65535, 65537, 1 << 20, (1 << 20) + 3}) {
    auto arena = device->makeArena(6 * count + 8);
    using Access = HostOperand::Access;
    HostOperand numbers{arena->at(0), 4, Access::Update};
    HostOperand halves{arena->at(4 * count), 2, Access::Write};
    auto body = [](int64_t begin, int64_t end, char *const *hosts) {
      for (int64_t i = begin; i < end; ++i) {
        int32_t number;
        char *place = hosts[0] + 4 * (i - begin);
        std::memcpy(&number, place, 4);
        number += static_cast<int32_t>(i) + 1;
        std::memcpy(place, &number, 4);
        auto half = static_cast<uint16_t>(number % 60001);
        std::memcpy(hosts[1] + 2 * (i - begin), &half, 2);
      }
    };
    HostOperand operands[] = {numbers, halves};
    for (int round = 0; round < 2; ++round)
      device->hostLoop(nullptr, count, operands, body);
    std::vector<char> bytes = readAll(*device, arena->at(0), 6 * count + 8);
    for (int64_t i = 0; i < count; ++i) {
      int32_t number;
      uint16_t half;
      std::memcpy(&number, &bytes[4 * i], 4);
      std::memcpy(&half, &bytes[4 * count + 2 * i], 2);
      ASSERT_EQ(number, 2 * (i + 1)) << i;
      ASSERT_EQ(half, number % 60001) << i;
    }
    EXPECT_EQ(std::vector(bytes.end() - 8, bytes.end()), std::vector<char>(8));
  }
}

TEST(CudaDevice, PointsOfTimeFollowTheOrder) {
  auto device = makeDevice(4);
  auto arena = device->makeArena(kMiB);
  double latest = -1.0;
  for (int step = 0; step < 3; ++step) {
    std::vector<Device::TimePoint> points;
    for (int i = 0; i < 4; ++i) {
      points.push_back(device->mark());
      device->zero(nullptr, arena->at(0), kMiB);
    }
    std::vector<double> seconds(4);
    for (int i : {3, 0, 2, 1})
      seconds[i] = device->secondsAt(points[i]);
    for (double second : seconds) {
      EXPECT_GE(second, latest);
      latest = second;
    }
    device->forget(points[2]);
    // Later points stay, counted from another event.
    EXPECT_NEAR(device->secondsAt(points[3]), seconds[3], 1e-5);
  }
}

TEST(CudaDevice, RecordingsReadWhatIsThereWhenTheyRun) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto device = makeDevice(seed);
    auto arena = device->makeArena(12);
    int32_t number = 5;
    device->write(&number, arena->at(0), 4);
    device->beginRecording();
    device->setPosition(7);
    askToIncrement(*device, arena->at(0));
    device->copy(nullptr, arena->at(0), arena->at(4), 4);
    device->zero(nullptr, arena->at(8), 4);
    std::unique_ptr<Recording> recording = device->endRecording();
    EXPECT_EQ(readNumber(*device, arena->at(0)), 5); // not done yet
    EXPECT_EQ(device->position(), -1);
    for (int32_t value : {10, 20, 30}) {
      device->write(&value, arena->at(0), 4);
      device->write(&value, arena->at(8), 4);
      recording->run();
      EXPECT_EQ(readNumber(*device, arena->at(4)), value + 1);
      EXPECT_EQ(readNumber(*device, arena->at(8)), 0);
    }
    EXPECT_EQ(device->position(), 7);
  }
}

TEST(CudaDevice, AFailureLeavesThePositionOfItsWork) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    auto device = makeDevice(seed);
    auto arena = device->makeArena(4);
    auto ask = [&] {
      device->setPosition(3);
      askToIncrement(*device, arena->at(0));
      device->setPosition(4);
      askToIncrement(*device, arena->at(-1)); // null
      device->setPosition(5); // throws if the kernel has run already
    };
    std::unique_ptr<Recording> recording;
    if (seed % 2) {
      device->beginRecording();
      ask();
      recording = device->endRecording();
    }
    EXPECT_EQ(device->position(), -1);
    std::string message = messageOf<DeviceError>([&] {
      recording ? recording->run() : ask();
      device->synchronize();
    });
    EXPECT_NE(message.find("kernel 'increment', block (0, 0, 0), thread 0, "
                           "k.cpp:1 (load): "),
              std::string::npos)
        << message;
    EXPECT_EQ(device->position(), 4);
    EXPECT_EQ(messageOf<DeviceError>([&] { device->synchronize(); }), message);
  }
}

TEST(CudaDevice, HighWaterIsTheLastByteThatIsNotZero) {
  auto device = makeDevice(1);
  int64_t bytes = 2 * kMiB + 100;
  auto arena = device->makeArena(bytes);
  auto host = device->makeHostArena(bytes);
  char one = 1;
  int64_t expected = 0;
  EXPECT_EQ(arena->highWater(), 0);
  for (int64_t place : {int64_t(0), kMiB - 1, kMiB, 2 * kMiB + 99}) {
    device->write(&one, arena->at(place), 1);
    device->copy(nullptr, arena->at(place), host->at(place), 1);
    expected = std::min(bytes, (place / 64 + 1) * 64);
    EXPECT_EQ(arena->highWater(), expected);
    EXPECT_EQ(host->highWater(), expected);
  }
  EXPECT_EQ(device->makeArena(0)->highWater(), 0);
}

TEST(CudaDevice, SaysWhatIsMissingForAnArena) {
  auto device = makeDevice(1, 5000);
  auto first = device->makeArena(1000);
  EXPECT_EQ(device->memory().free, 4000);
  EXPECT_EQ(messageOf<RunError>([&] { device->makeArena(4001); }),
            "emulated GPU: expected 4001 bytes of free memory for an arena, "
            "got 4000 of 5000");
  first.reset();
  EXPECT_EQ(device->makeArena(4001)->bytes(), 4001);
}
