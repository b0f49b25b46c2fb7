// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU as a device: host memory and products of the CPU, kernels of
// a GPU.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_SIMTDEVICE_H
#define ROTA_RUNTIME_DEVICE_SIMT_SIMTDEVICE_H

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/simt/Simt.h"

#include <map>
#include <span>
#include <string_view>

namespace rota {

/// For the thread of one rank.
class SimtDevice : public CpuDevice {
public:
  explicit SimtDevice(std::span<const RotaGpuCode> code);
  /// Kernels may reach the bytes of arenas alone.
  std::unique_ptr<Arena> makeArena(int64_t bytes) override;
  /// The first error of the kernel becomes the context's failure.
  void launch(RotaContext *context, RotaKernel kernel, void *const *args,
              int64_t rows, int64_t grain) override;

private:
  simt::Emulator emulator;
  std::map<std::string_view, const RotaSimtKernel *> kernels; // by name
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_SIMT_SIMTDEVICE_H
