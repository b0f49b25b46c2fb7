// SPDX-License-Identifier: Apache-2.0
//
// The time of work that cuBLASLt does on the GPU and the operands at hand.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H
#define ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H

#include "runtime/device/cuda/BlasLtProduct.h"

#include <functional>

namespace rota::cuda {

/// The number below `count` whose work, which `start` asks `stream` for, takes
/// the least time, the least such number where several do. Starts each many
/// times, and waits for the stream, which must not be captured. Work that is
/// refused is left out; 0 when all is. Throws RunError.
size_t findFastest(const DriverApi &driver, size_t count,
                   const std::function<BlasStatus(size_t)> &start,
                   StreamHandle stream);

/// Throws RunError with the driver's words when `result` is an error.
void checkDriver(const DriverApi &driver, Result result, const char *what);

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H
