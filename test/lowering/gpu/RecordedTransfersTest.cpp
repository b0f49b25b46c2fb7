// SPDX-License-Identifier: Apache-2.0
//
// Transfers of a rank that is alone on its GPU, recorded and replayed, and the
// device's own arithmetic, with the runtime's kernels on the emulated driver.
#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "test/lowering/gpu/ServiceKernelsFixture.h"
#include "test/runtime/collective/RandomCollective.h"

using namespace rota;
using namespace rota::test;

namespace {

class ServicesOnDevice : public ServiceKernels {
protected:
  void SetUp() override {
    ServiceKernels::SetUp();
    for (const char *name : {cuda::kAddKernel, cuda::kRoundKernel,
                             cuda::kSumKernel, cuda::kCombineKernels[0],
                             cuda::kCombineKernels[1], cuda::kCombineKernels[2],
                             cuda::kCopyKernels[0], cuda::kCopyKernels[1]})
      image.push_back(kernels->find(name));
    image.push_back(nullptr);
  }

  std::unique_ptr<cuda::CudaDevice> makeDevice(uint64_t seed) {
    simt::setEmulatedDriverOptions({.threads = 1, .seed = seed});
    code = {ROTA_GPU_HOST, 0, image.data(),
            static_cast<int64_t>(image.size() * sizeof(image[0]))};
    return std::make_unique<cuda::CudaDevice>(
        std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0,
                                    std::span(&code, 1)),
        nullptr);
  }

  std::vector<const RotaSimtKernel *> image;
  RotaGpuCode code;
};

/// A collective of one rank, and its buffers on the device.
struct OwnTransfer {
  RandomCollective random;
  std::unique_ptr<Arena> source, destination;

  OwnTransfer(uint64_t seed, Device &device)
      : random(seed, makeMesh(1), 200),
        source(device.makeArena(random.source(0).size())),
        destination(device.makeArena(random.before(0).size())) {}

  void reset(Device &device) {
    std::vector<uint8_t> from = random.source(0), to = random.before(0);
    device.write(from.data(), source->at(0), from.size());
    device.write(to.data(), destination->at(0), to.size());
  }
  Request start(Communicator &communicator) {
    return communicator.start(random.stream, random.collective, random.group(0),
                              source->at(0), destination->at(0));
  }
  void expectResult(Device &device) {
    std::vector<uint8_t> expected = random.expected(0);
    std::vector<uint8_t> result(expected.size());
    device.read(destination->at(0), result.data(), result.size());
    EXPECT_EQ(result, expected) << random.describe();
  }
};

} // namespace

TEST_F(ServicesOnDevice, ReplayTransfersOfOneRank) {
  for (uint64_t seed : {1, 2, 3}) {
    auto device = makeDevice(seed);
    SharedGpuNetwork network({device.get()}, /*timing=*/false);
    Communicator &communicator = network.at(0);
    ASSERT_TRUE(communicator.isRecordable());
    std::vector<OwnTransfer> transfers;
    for (uint64_t number = 0; number < 60; ++number)
      transfers.emplace_back(100 * seed + number, *device).reset(*device);
    auto ask = [&] {
      std::vector<Request> requests;
      for (OwnTransfer &transfer : transfers)
        requests.push_back(transfer.start(communicator));
      for (Request request : requests)
        communicator.wait(request);
    };
    auto check = [&] {
      for (OwnTransfer &transfer : transfers) {
        transfer.expectResult(*device);
        transfer.reset(*device);
      }
    };
    ask();
    check();
    device->beginRecording();
    ask();
    std::unique_ptr<Recording> recording = device->endRecording();
    for (int replay = 0; replay < 2; ++replay) {
      recording->run();
      check();
    }
    ask(); // events of the recording are used again
    check();
  }
}

TEST_F(ServicesOnDevice, SeveralRanksAndTimesAreNotRecorded) {
  auto first = makeDevice(1);
  cuda::CudaDevice second(std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0,
                                                      std::span(&code, 1)),
                          nullptr);
  SharedGpuNetwork timed({first.get()}, /*timing=*/true);
  EXPECT_FALSE(timed.at(0).isRecordable());
  SharedGpuNetwork two({first.get(), &second}, /*timing=*/false);
  EXPECT_FALSE(two.at(0).isRecordable());
  EXPECT_FALSE(two.at(1).isRecordable());
}

TEST_F(ServicesOnDevice, AddRoundAndSum) {
  auto device = makeDevice(1);
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
    device->add(nullptr, a, b, count);
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
