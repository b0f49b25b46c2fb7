// SPDX-License-Identifier: Apache-2.0
//
// The host as a device. Its kernels are RotaCpuKernel, its products oneDNN's.
#ifndef ROTA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define ROTA_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/Device.h"

namespace rota {

/// The kernel that is this function.
inline RotaKernel toKernel(RotaCpuKernel function) {
  return reinterpret_cast<RotaKernel>(function);
}
inline RotaCpuKernel toFunction(RotaKernel kernel) {
  return reinterpret_cast<RotaCpuKernel>(const_cast<void *>(kernel));
}

class CpuDevice : public Device {
public:
  std::unique_ptr<Arena> makeArena(int64_t bytes) override;
  std::unique_ptr<Arena> makeHostArena(int64_t bytes) override;
  void copy(RotaContext *context, const void *source, void *destination,
            int64_t bytes) override;
  void zero(RotaContext *context, void *place, int64_t bytes) override;
  void read(const void *source, void *host, int64_t bytes) override;
  void write(const void *host, void *destination, int64_t bytes) override;
  void
  hostLoop(RotaContext *context, int64_t count,
           std::span<const HostOperand> operands,
           FunctionRef<void(int64_t, int64_t, char *const *)> body) override;
  void launch(RotaContext *context, RotaKernel kernel, void *const *args,
              int64_t rows, int64_t grain) override;
  void multiply(RotaContext *context, const RotaGemm &gemm, const void *a,
                const void *b, void *c) override;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
