// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows every device: a function that makes it, and a line
// in the table.
#include "runtime/device/services/MakeDevice.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/device/cuda/CublasLtProducts.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/device/simt/EmulatedProducts.h"

#include <algorithm>
#include <cstdlib>

namespace rota {
namespace {

using Code = std::span<const RotaGpuCode>;

Devices makeCpus(size_t ranks, Code, const DeviceOptions &) {
  loadOneDnn(); // its absence ends the run before it begins
  Devices devices;
  for (size_t i = 0; i < ranks; ++i)
    devices.ranks.push_back(std::make_unique<CpuDevice>());
  return devices;
}

/// Ranks on one GPU, each with products of its own.
template <typename MakeProducts>
Devices shareGpu(size_t ranks, std::shared_ptr<cuda::Gpu> gpu,
                 MakeProducts makeProducts) {
  Devices devices;
  for (size_t i = 0; i < ranks; ++i) {
    auto device = std::make_unique<cuda::CudaDevice>(gpu, makeProducts());
    devices.gpus.push_back(device.get());
    devices.ranks.push_back(std::move(device));
  }
  return devices;
}

/// A number other than 0 makes functions that GPUs approximate inexact.
constexpr const char *kPerturbation = "ROTA_PERTURB_APPROXIMATIONS";

Devices makeEmulatedGpus(size_t ranks, Code code,
                         const DeviceOptions &options) {
  simt::EmulatedDriverOptions emulated;
  emulated.threads = options.threads;
  emulated.seed = options.seed;
  simt::setEmulatedDriverOptions(emulated);
  if (const char *seed = std::getenv(kPerturbation))
    simt::perturbApproximations(std::strtoull(seed, nullptr, 10));
  auto gpu = std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0, code);
  return shareGpu(ranks, gpu,
                  [] { return std::make_unique<simt::EmulatedProducts>(); });
}

Devices makeCudaGpus(size_t ranks, Code code, const DeviceOptions &options) {
  const cuda::DriverApi &driver = cuda::loadDriver();
  int count = 0;
  driver.deviceCount(&count);
  auto gpu = std::make_shared<cuda::Gpu>(
      driver, options.process % std::max(count, 1), code);
  cuda::CublasLtOptions choices;
  choices.allowTf32 = options.allowTf32;
  choices.loadsAhead = options.loadsAhead;
  return shareGpu(ranks, gpu, [&] {
    return std::make_unique<cuda::CublasLtProducts>(gpu->api(), gpu->name(),
                                                    cuda::loadBlasLt, choices);
  });
}

} // namespace

Devices makeDevices(DeviceKind kind, size_t ranks, Code code,
                    const DeviceOptions &options) {
  // In the order of DeviceKind.
  static constexpr Devices (*makers[])(size_t, Code, const DeviceOptions &) = {
      makeCpus, makeEmulatedGpus, makeCudaGpus};
  return makers[static_cast<size_t>(kind)](ranks, code, options);
}

} // namespace rota
