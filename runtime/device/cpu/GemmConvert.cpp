// SPDX-License-Identifier: Apache-2.0
//
// Loops that compilers vectorize as they stand.
#include "runtime/device/cpu/GemmConvert.h"

#include "runtime/Abi.h"

#include <bit>
#include <cstring>

namespace rota {

static float widen(uint16_t value) {
  return std::bit_cast<float>(uint32_t(value) << 16);
}

static uint16_t narrow(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40;
  return uint16_t(value == value ? rounded : quiet);
}

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
      target[column] = widen(from[column]);
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
      to[column] = narrow(source[column]);
  }
}

} // namespace rota
