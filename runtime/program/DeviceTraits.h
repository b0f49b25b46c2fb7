// SPDX-License-Identifier: Apache-2.0
//
// Traits of devices, for code that would ask for a kind of device. Makers stand
// in runtime/device/services/MakeDevice.cpp and lowering/device/DeviceCode.cpp.
#ifndef ROTA_RUNTIME_PROGRAM_DEVICETRAITS_H
#define ROTA_RUNTIME_PROGRAM_DEVICETRAITS_H

#include "runtime/program/DeviceKind.h"

namespace rota {

struct DeviceTraits {
  /// Kernels are GPU code, tensors lie in memory of its own, and it works while
  /// the one thread that asks for work goes on.
  bool isGpu = false;
  bool isEmulated = false; // on an emulator, which can check kernels
  bool hasNccl = false;    // it can be one of several processes' GPUs
};

constexpr DeviceTraits traitsOf(DeviceKind kind) {
  constexpr DeviceTraits traits[] = {
      {}, // cpu
      {.isGpu = true, .isEmulated = true},
      {.isGpu = true, .hasNccl = true},
  };
  return traits[static_cast<int>(kind)];
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_DEVICETRAITS_H
