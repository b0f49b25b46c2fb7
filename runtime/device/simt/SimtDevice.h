// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU as a device: host memory and products of the CPU, kernels of
// a GPU.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_SIMTDEVICE_H
#define ROTA_RUNTIME_DEVICE_SIMT_SIMTDEVICE_H

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/simt/Simt.h"

/// The form of a kernel of this device: a RotaKernel is the address of one.
extern "C" struct RotaSimtLaunch {
  const RotaSimtKernel *kernel;
  uint32_t grid[3];    // blocks
  uint32_t block;      // threads of a block
  int64_t sharedBytes; // dynamic shared memory of a block
  int64_t arguments;   // pointers
};

namespace rota {

/// For the thread of one rank.
class SimtDevice : public CpuDevice {
public:
  /// Kernels may reach the bytes of arenas alone.
  std::unique_ptr<Arena> makeArena(int64_t bytes) override;
  /// The first error of the kernel becomes the context's failure.
  void launch(RotaContext *context, RotaKernel kernel, void *const *args,
              int64_t rows, int64_t grain) override;

private:
  simt::Emulator emulator;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_SIMT_SIMTDEVICE_H
