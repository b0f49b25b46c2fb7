// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/GpuWork.h"

namespace rota {

GpuWork::GpuWork(Device &device, cuda::CudaDevice &gpu,
                 const bench::GpuOps &ops, const GpuSizes &sizes, double share)
    : device(device), gpu(gpu), sizes(sizes), ops(ops),
      bench(device, sizes.isEmulated,
            {.warmUp = share * DeviceBench::Durations().warmUp,
             .measured = share * DeviceBench::Durations().measured}) {}

double GpuWork::measure(const DeviceBench::Run &run) {
  double seconds = bench.measure(run);
  return sizes.isEmulated ? kEmulatedSecond * seconds : seconds;
}

void GpuWork::allocate(size_t number) {
  std::vector<DeviceBench::Buffer> buffers;
  for (const bench::GpuOps::Buffer &buffer : ops.functions()[number].buffers)
    buffers.push_back({buffer.element, buffer.bytes, buffer.isGiven});
  bench.allocate(std::move(buffers));
}

static std::vector<DeviceBench::Launch>
launchesOf(const bench::GpuOps::Function &function) {
  std::vector<DeviceBench::Launch> launches;
  for (const bench::GpuOps::Launch &launch : function.launches)
    launches.push_back({launch.kernel, launch.shape.grid, launch.shape.block,
                        launch.shape.sharedBytes, launch.shape.ownSharedBytes,
                        launch.arguments});
  return launches;
}

double GpuWork::secondsOfFunction(size_t number) {
  allocate(number);
  double seconds = measure(bench.runOf(launchesOf(ops.functions()[number])));
  bench.check();
  return seconds;
}

double GpuWork::secondsOfProduct(const RotaGemm &gemm) {
  bench.allocate(buffersOf(gemm));
  double seconds = measure([&](int64_t set) {
    device.multiply(nullptr, gemm, bench.at(set, 0), bench.at(set, 1),
                    bench.at(set, 2));
  });
  bench.check();
  return seconds;
}

double GpuWork::secondsOfCopy(int64_t bytes) {
  bench.allocate({{"f32", bytes, true}, {"f32", bytes, false}});
  return measure([&](int64_t set) {
    device.copy(nullptr, bench.at(set, 0), bench.at(set, 1), bytes);
  });
}

double GpuWork::secondsOfHostCopy(int64_t bytes, bool isToDevice) {
  std::unique_ptr<Arena> host = device.makeHostArena(bytes);
  bench.allocate({{"f32", bytes, true}});
  double seconds = measure([&](int64_t set) {
    void *here = host->at(0), *there = bench.at(set, 0);
    device.copy(nullptr, isToDevice ? here : there, isToDevice ? there : here,
                bytes);
  });
  device.synchronize(); // the memory ends here
  return seconds;
}

double GpuWork::secondsOfLaunch(size_t number, bool isRecorded) {
  allocate(number);
  DeviceBench::Run launch = bench.runOf(launchesOf(ops.functions()[number]));
  auto launchAll = [&](int64_t set) {
    for (int i = 0; i < sizes.launches; ++i)
      launch(set);
  };
  if (!isRecorded)
    return measure(launchAll) / sizes.launches;
  launchAll(0); // code is loaded before a recording
  device.synchronize();
  gpu.beginRecording();
  launchAll(0);
  std::unique_ptr<Recording> recording = gpu.endRecording();
  double seconds = measure([&](int64_t) { recording->run(); });
  device.synchronize();
  return seconds / sizes.launches;
}

} // namespace rota
