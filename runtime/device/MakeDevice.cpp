// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows every device.
#include "runtime/device/MakeDevice.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CublasLtProducts.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/device/simt/EmulatedProducts.h"

#include <algorithm>

namespace rota {

static std::shared_ptr<cuda::Gpu> openGpu(DeviceKind kind,
                                          std::span<const RotaGpuCode> code,
                                          const DeviceOptions &options) {
  if (kind == DeviceKind::Cuda) {
    const cuda::DriverApi &driver = cuda::loadDriver();
    int count = 0;
    driver.deviceCount(&count);
    return std::make_shared<cuda::Gpu>(
        driver, options.process % std::max(count, 1), code);
  }
  simt::EmulatedDriverOptions emulated;
  emulated.threads = options.threads;
  emulated.seed = options.seed;
  simt::setEmulatedDriverOptions(emulated);
  return std::make_shared<cuda::Gpu>(simt::emulatedDriver(), 0, code);
}

static std::unique_ptr<cuda::Products>
makeProducts(const cuda::Gpu &gpu, const DeviceOptions &options) {
  if (gpu.isEmulated())
    return std::make_unique<simt::EmulatedProducts>();
  cuda::CublasLtOptions choices;
  choices.allowTf32 = options.allowTf32;
  return std::make_unique<cuda::CublasLtProducts>(gpu.api(), gpu.name(),
                                                  cuda::loadBlasLt(), choices);
}

std::vector<std::unique_ptr<Device>>
makeDevices(DeviceKind kind, size_t ranks, std::span<const RotaGpuCode> code,
            const DeviceOptions &options) {
  std::vector<std::unique_ptr<Device>> devices;
  if (kind == DeviceKind::Cpu) {
    for (size_t i = 0; i < ranks; ++i)
      devices.push_back(std::make_unique<CpuDevice>());
    return devices;
  }
  std::shared_ptr<cuda::Gpu> gpu = openGpu(kind, code, options);
  for (size_t i = 0; i < ranks; ++i)
    devices.push_back(
        std::make_unique<cuda::CudaDevice>(gpu, makeProducts(*gpu, options)));
  return devices;
}

} // namespace rota
