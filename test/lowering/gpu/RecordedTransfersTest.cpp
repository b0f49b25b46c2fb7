// SPDX-License-Identifier: Apache-2.0
//
// Transfers of ranks that share a GPU, recorded and replayed, and the device's
// own arithmetic, with the runtime's kernels on the emulated driver.
#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "test/lowering/gpu/ServiceKernelsFixture.h"
#include "test/runtime/collective/RandomCollective.h"

#include <functional>
#include <thread>

using namespace rota;
using namespace rota::test;

namespace {

/// Devices of ranks that share the emulated GPU.
using Devices = std::vector<std::unique_ptr<cuda::CudaDevice>>;

class ServicesOnDevice : public ServiceKernels {
protected:
  void SetUp() override {
    ServiceKernels::SetUp();
    for (const char *name : cuda::kServiceKernels)
      image.push_back(kernels->find(name));
    image.push_back(nullptr);
  }

  Devices makeDevices(int ranks, uint64_t seed) {
    simt::setEmulatedDriverOptions({.threads = 1, .seed = seed});
    code = {ROTA_GPU_HOST, 0, image.data(),
            static_cast<int64_t>(image.size() * sizeof(image[0]))};
    auto gpu = std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0,
                                           std::span(&code, 1));
    Devices devices;
    for (int rank = 0; rank < ranks; ++rank)
      devices.push_back(std::make_unique<cuda::CudaDevice>(gpu, nullptr));
    return devices;
  }

  std::vector<const RotaSimtKernel *> image;
  RotaGpuCode code;
};

/// One rank's part of a collective, and its buffers on the device.
struct OwnTransfer {
  RandomCollective random;
  int rank;
  std::unique_ptr<Arena> source, destination;

  OwnTransfer(uint64_t seed, int ranks, int rank, Device &device)
      : random(seed, makeMesh(ranks), 200), rank(rank),
        source(device.makeArena(random.source(rank).size())),
        destination(device.makeArena(random.before(rank).size())) {}

  void reset(Device &device) {
    std::vector<uint8_t> from = random.source(rank), to = random.before(rank);
    device.write(from.data(), source->at(0), from.size());
    device.write(to.data(), destination->at(0), to.size());
  }
  Request start(Communicator &communicator) {
    return communicator.start(random.stream, random.collective,
                              random.group(rank), source->at(0),
                              destination->at(0));
  }
  void expectResult(Device &device) {
    std::vector<uint8_t> expected = random.expected(rank);
    std::vector<uint8_t> result(expected.size());
    device.read(destination->at(0), result.data(), result.size());
    EXPECT_EQ(result, expected) << random.describe();
  }
};

/// Repeated transfers of one rank on its thread.
class TransfersOfRank {
public:
  TransfersOfRank(uint64_t seed, int ranks, int rank,
                  Communicator &communicator, Device &device)
      : communicator(communicator), device(device) {
    for (uint64_t number = 0; number < 40; ++number)
      transfers.emplace_back(100 * seed + number, ranks, rank, device)
          .reset(device);
  }
  void ask() {
    std::vector<Request> requests;
    for (OwnTransfer &transfer : transfers)
      requests.push_back(transfer.start(communicator));
    for (Request request : requests)
      communicator.wait(request);
  }
  std::unique_ptr<Recording> record() {
    Recorder *recorder = communicator.recorder();
    recorder->begin();
    ask();
    return recorder->end([] { return ""; });
  }
  void check() {
    for (OwnTransfer &transfer : transfers) {
      transfer.expectResult(device);
      transfer.reset(device);
    }
  }

private:
  Communicator &communicator;
  Device &device;
  std::vector<OwnTransfer> transfers;
};

/// Calls body(rank) on a thread for each rank.
void onEachRank(int ranks, const std::function<void(int rank)> &body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { body(rank); });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<cuda::CudaDevice *> pointers(const Devices &devices) {
  std::vector<cuda::CudaDevice *> all;
  for (const auto &device : devices)
    all.push_back(device.get());
  return all;
}

} // namespace

// One graph has the work of all ranks: what a rank writes before a replay and
// reads after it belongs to that replay.
TEST_F(ServicesOnDevice, ReplayTransfers) {
  for (int ranks : {1, 2, 3, 4})
    for (uint64_t seed : {1, 2, 3}) {
      Devices devices = makeDevices(ranks, seed);
      SharedGpuNetwork network(pointers(devices), /*timing=*/false);
      onEachRank(ranks, [&](int rank) {
        TransfersOfRank transfers(seed, ranks, rank, network.at(rank),
                                  *devices[rank]);
        transfers.ask();
        transfers.check();
        std::unique_ptr<Recording> recording = transfers.record();
        for (int replay = 0; replay < 2; ++replay) {
          recording->run();
          transfers.check();
        }
        transfers.ask(); // events of the recording are used again
        transfers.check();
      });
    }
}

TEST_F(ServicesOnDevice, TimedTransfersAreNotRecorded) {
  Devices devices = makeDevices(2, 1);
  SharedGpuNetwork timed(pointers(devices), /*timing=*/true);
  EXPECT_EQ(timed.at(0).recorder(), nullptr);
  EXPECT_EQ(timed.at(1).recorder(), nullptr);
}

TEST_F(ServicesOnDevice, AddRoundAndSum) {
  Devices devices = makeDevices(1, 1);
  auto &device = devices[0];
  for (int64_t count : {0, 1, 255, 257, 70001}) {
    std::vector<float> values(count), terms(count), sums(count);
    std::vector<uint16_t> rounded(count);
    double exact = 0.0, sum = -1.0;
    for (int64_t i = 0; i < count; ++i) {
      values[i] = float(i % 251 - 100); // sums of them are exact
      terms[i] = 0.5f * float(i % 7);
      exact += values[i] + terms[i];
    }
    auto arena = device->makeArena(10 * count + 8);
    auto *a = static_cast<float *>(arena->at(8)), *b = a + count;
    auto *c = reinterpret_cast<uint16_t *>(b + count);
    device->write(values.data(), a, 4 * count);
    device->write(terms.data(), b, 4 * count);
    device->add(nullptr, ElementType::F32, a, b, count);
    device->round(nullptr, b, c, count);
    device->sum(nullptr, a, count, static_cast<double *>(arena->at(0)));
    device->read(a, sums.data(), 4 * count);
    device->read(c, rounded.data(), 2 * count);
    device->read(arena->at(0), &sum, 8);
    EXPECT_EQ(sum, exact);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(sums[i], values[i] + terms[i]) << i;
      uint32_t wide;
      std::memcpy(&wide, &terms[i], 4); // bf16 values already
      ASSERT_EQ(rounded[i], wide >> 16) << i;
    }
  }
}
