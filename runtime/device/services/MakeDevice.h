// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_RUNTIME_DEVICE_SERVICES_MAKEDEVICE_H
#define ROTA_RUNTIME_DEVICE_SERVICES_MAKEDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/program/DeviceKind.h"

#include <vector>

namespace rota {

namespace cuda {
class CudaDevice;
}

struct DeviceOptions {
  // The number of this process on its machine: processes take the GPUs that
  // they see in turn, since a launcher may show each one a GPU of its own.
  int process = 0;
  int threads = 1;        // host threads of the emulated GPU
  uint64_t seed = 0;      // seed of the order in which the emulated GPU works
  bool allowTf32 = false; // products of f32 may round their operands
  // Transfers may wait for another rank, so all code of a GPU is loaded before.
  bool loadsAhead = false;
};

/// The devices of a process's ranks.
struct Devices {
  std::vector<std::unique_ptr<Device>> ranks;
  /// The same, where their memory is a GPU's; else empty.
  std::vector<cuda::CudaDevice *> gpus;
};

/// A device for each of `ranks` ranks of this process, which share the machine
/// or the GPU. `code` is that of the executable. Throws InputError when there
/// is no such device.
Devices makeDevices(DeviceKind kind, size_t ranks,
                    std::span<const RotaGpuCode> code,
                    const DeviceOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_SERVICES_MAKEDEVICE_H
