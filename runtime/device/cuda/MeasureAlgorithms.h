// SPDX-License-Identifier: Apache-2.0
//
// The time of work that cuBLASLt does on the GPU and the operands at hand.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H
#define ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H

#include "runtime/device/cuda/BlasLtProduct.h"

#include <functional>
#include <optional>
#include <string>

namespace rota::cuda {

/// What was found by measuring.
struct Fastest {
  std::optional<size_t> number; // nothing where all work was refused
  size_t first = 0;             // the least number whose work was not refused
  size_t refused = 0;
  BlasStatus status = kBlasSuccess; // of the last that was refused
};

/// The number below `count` whose work, which `start` asks `stream` for, takes
/// the least time, the least such number where several do. Starts each many
/// times, and waits for the stream, which must not be captured. Work that is
/// refused is left out. Throws DeviceError where the GPU fails, which it does
/// for good: with `name` and the number of the work that it failed in.
Fastest findFastest(const DriverApi &driver, const std::string &name,
                    size_t count,
                    const std::function<BlasStatus(size_t)> &start,
                    StreamHandle stream);

/// Throws DeviceError with the driver's words when `result` is an error.
void checkDriver(const DriverApi &driver, Result result, const char *what);

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H
