// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_RUNTIME_DEVICE_MAKEDEVICE_H
#define ROTA_RUNTIME_DEVICE_MAKEDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/program/DeviceKind.h"

namespace rota {

/// A device for one rank. `code` is that of the executable.
std::unique_ptr<Device> makeDevice(DeviceKind kind,
                                   std::span<const RotaGpuCode> code);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_MAKEDEVICE_H
