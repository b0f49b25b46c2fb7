// SPDX-License-Identifier: Apache-2.0
//
// Element conversions for products whose types the GEMM library does not know
// on this machine: operands are widened to f32, the product is rounded back.
#ifndef ROTA_RUNTIME_DEVICE_CPU_GEMMCONVERT_H
#define ROTA_RUNTIME_DEVICE_CPU_GEMMCONVERT_H

#include <cstdint>

namespace rota {

/// Widens `rows` x `columns` elements of `type`, whose rows are `stride`
/// elements apart, to f32 without gaps.
void widenRows(const void *source, int32_t type, int64_t stride, int64_t rows,
               int64_t columns, float *target);

/// The inverse: rounds bf16 to nearest, ties to even; a NaN stays one.
void narrowRows(const float *source, int32_t type, int64_t stride, int64_t rows,
                int64_t columns, void *target);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_GEMMCONVERT_H
