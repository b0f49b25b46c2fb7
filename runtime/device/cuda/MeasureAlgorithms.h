// SPDX-License-Identifier: Apache-2.0
//
// The time of algorithms of cuBLASLt on the GPU and the operands at hand.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H
#define ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H

#include "runtime/device/cuda/BlasLtProduct.h"

#include <span>

namespace rota::cuda {

/// The index of the algorithm that takes the least time on `stream`, the least
/// such index where several do. Writes C many times, and waits for the stream,
/// which must not be captured. Algorithms that the GPU refuses are left out; 0
/// when it refuses all. Throws RunError.
size_t findFastest(const DriverApi &driver, const BlasLtProduct &product,
                   std::span<const BlasLtAlgorithm> algorithms,
                   const BlasLtOperands &operands, StreamHandle stream);

/// Throws RunError with the driver's words when `result` is an error.
void checkDriver(const DriverApi &driver, Result result, const char *what);

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_MEASUREALGORITHMS_H
