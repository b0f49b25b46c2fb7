// SPDX-License-Identifier: Apache-2.0
//
// The host as a device. Its kernels are RotaCpuKernel, its products oneDNN's.
#ifndef ROTA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define ROTA_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cpu/PrepareProducts.h"

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
  std::string name() const override { return "cpu"; }
  Memory memory() const override;
  std::unique_ptr<Arena> makeArena(int64_t bytes) override;
  std::unique_ptr<Arena> makeHostArena(int64_t bytes) override;
  void copy(RotaContext *context, const void *source, void *destination,
            int64_t bytes) override;
  void zero(RotaContext *context, void *place, int64_t bytes) override;
  void read(const void *source, void *host, int64_t bytes) override;
  void write(const void *host, void *destination, int64_t bytes) override;
  std::unique_ptr<HostRead> startRead(const void *source,
                                      int64_t bytes) override;
  void
  hostLoop(RotaContext *context, int64_t count,
           std::span<const HostOperand> operands,
           FunctionRef<void(int64_t, int64_t, char *const *)> body) override;
  void add(RotaContext *context, ElementType type, void *sum, const void *terms,
           int64_t count) override;
  void round(RotaContext *context, const float *values, uint16_t *rounded,
             int64_t count) override;
  void sum(RotaContext *context, const float *values, int64_t count,
           double *sum) override;
  void finishStep(const StepNumbers &numbers) override;
  void decideStep(const StepDecision &decision) override;
  void findCotangents(const CotangentNumbers &numbers) override;
  void launch(RotaContext *context, RotaKernel kernel, void *const *args,
              int64_t rows, int64_t grain) override;
  void multiply(RotaContext *context, const RotaGemm &gemm, const void *a,
                const void *b, void *c) override;
  void prepareTasks(RotaContext *context,
                    FunctionRef<void(RotaContext *)> runTasks) override {
    prepareProductsOnCpu(context, runTasks);
  }
  void checkIndices(RotaContext *context, const int32_t *indices, int64_t count,
                    int64_t least, int64_t bound) override;
  void useWorkspace(void *, void *, int64_t) override {}
  void synchronize() override {}
  bool isAsynchronous() const override { return false; }
  void setPosition(int) override {}
  int position() const override { return -1; }
  TimePoint mark() override;
  double secondsAt(TimePoint point) override;
  void forget(TimePoint) override {}
};

/// The device whose memory and kernels are the host's own, for callers without
/// a rank.
CpuDevice &cpuDevice();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
