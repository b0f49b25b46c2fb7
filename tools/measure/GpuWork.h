// SPDX-License-Identifier: Apache-2.0
//
// A GPU with compiled ops, and the times of what it does. Compiled with
// exceptions.
#ifndef ROTA_TOOLS_MEASURE_GPUWORK_H
#define ROTA_TOOLS_MEASURE_GPUWORK_H

#include "ir/rota/cost/Machine.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "tools/bench/gpu/GpuOps.h"
#include "tools/measure/DeviceBench.h"

namespace rota {

/// A second of the emulated GPU, so that its numbers are in the ranges of those
/// of a GPU.
inline constexpr double kEmulatedSecond = 1e-3;

/// Sizes of what is measured.
struct GpuSizes {
  bool isEmulated = false;
  int64_t copiedBytes = 1 << 30, hostBytes = 256 << 20;
  int64_t messageBytes = 64 << 20; // of a rank's part
  int64_t arithmeticRows = 16384;
  int launches = 256; // of one kernel of one row
};

class GpuWork {
public:
  /// `share` of the usual seconds of a figure.
  GpuWork(Device &device, cuda::CudaDevice &gpu, const bench::GpuOps &ops,
          const GpuSizes &sizes, double share);

  Device &device;
  cuda::CudaDevice &gpu;
  const GpuSizes sizes;

  double secondsOfFunction(size_t number);
  const mlir::rota::Cost &costOf(size_t number) const {
    return ops.functions()[number].cost;
  }
  double secondsOfProduct(const RotaGemm &gemm);
  /// From device to device.
  double secondsOfCopy(int64_t bytes);
  /// Between pinned memory of the host and the device.
  double secondsOfHostCopy(int64_t bytes, bool isToDevice);
  /// Of one launch of the function's kernel among many, each asked for, or
  /// recorded together.
  double secondsOfLaunch(size_t number, bool isRecorded);

private:
  void allocate(size_t number);
  double measure(const DeviceBench::Run &run);

  const bench::GpuOps &ops;
  DeviceBench bench;
};

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_GPUWORK_H
