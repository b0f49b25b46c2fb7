// SPDX-License-Identifier: Apache-2.0
//
// The devices that a trainer can be compiled for.
#ifndef ROTA_RUNTIME_PROGRAM_DEVICEKIND_H
#define ROTA_RUNTIME_PROGRAM_DEVICEKIND_H

#include "runtime/text/Names.h"

namespace rota {

enum class DeviceKind {
  Cpu,
  Simt, // GPU kernels on an emulator
  Cuda,
};
template <> struct Names<DeviceKind> {
  static constexpr const char *list[] = {"cpu", "simt", "cuda"};
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_DEVICEKIND_H
