// SPDX-License-Identifier: Apache-2.0
//
// Loops that compilers vectorize as they stand.
#include "runtime/device/cpu/GemmConvert.h"

#include "runtime/Abi.h"
#include "runtime/program/Convert.h"

#include <cstring>

namespace rota {

void widenRows(const void *source, int32_t type, int64_t stride, int64_t rows,
               int64_t columns, float *target, int64_t targetStride) {
  for (int64_t row = 0; row < rows; ++row, target += targetStride) {
    if (type == ROTA_F32) {
      std::memcpy(target, static_cast<const float *>(source) + row * stride,
                  columns * sizeof(float));
      continue;
    }
    const uint16_t *from = static_cast<const uint16_t *>(source) + row * stride;
    for (int64_t column = 0; column < columns; ++column)
      target[column] = fromBf16(from[column]);
  }
}

void narrowRows(const float *source, int64_t sourceStride, int32_t type,
                int64_t stride, int64_t rows, int64_t columns, void *target) {
  for (int64_t row = 0; row < rows; ++row, source += sourceStride) {
    if (type == ROTA_F32) {
      std::memcpy(static_cast<float *>(target) + row * stride, source,
                  columns * sizeof(float));
      continue;
    }
    uint16_t *to = static_cast<uint16_t *>(target) + row * stride;
    for (int64_t column = 0; column < columns; ++column)
      to[column] = toBf16(source[column]);
  }
}

} // namespace rota
