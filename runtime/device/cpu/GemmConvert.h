// SPDX-License-Identifier: Apache-2.0
//
// Copies of operands in f32, and results rounded back: for products whose types
// the GEMM library does not know on this machine, or that it is slow with.
#ifndef ROTA_RUNTIME_DEVICE_CPU_GEMMCONVERT_H
#define ROTA_RUNTIME_DEVICE_CPU_GEMMCONVERT_H

#include <cstdint>

namespace rota {

/// Copies `rows` x `columns` elements of `type` to f32. `stride` and
/// `targetStride` are the elements from a row to the next.
void widenRows(const void *source, int32_t type, int64_t stride, int64_t rows,
               int64_t columns, float *target, int64_t targetStride);

/// The inverse: rounds bf16 to nearest, ties to even; a NaN stays one.
void narrowRows(const float *source, int64_t sourceStride, int32_t type,
                int64_t stride, int64_t rows, int64_t columns, void *target);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_GEMMCONVERT_H
