// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows every device.
#include "runtime/device/MakeDevice.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/simt/SimtDevice.h"

namespace rota {

std::unique_ptr<Device> makeDevice(DeviceKind kind,
                                   std::span<const RotaGpuCode> code) {
  switch (kind) {
  case DeviceKind::Cpu:
    return std::make_unique<CpuDevice>();
  case DeviceKind::Simt:
    return std::make_unique<SimtDevice>(code);
  case DeviceKind::Cuda: // made where its code is known
    break;
  }
  return nullptr;
}

} // namespace rota
