// SPDX-License-Identifier: Apache-2.0
//
// Element types between memory and f32.
#ifndef ROTA_RUNTIME_PROGRAM_CONVERT_H
#define ROTA_RUNTIME_PROGRAM_CONVERT_H

#include <bit>
#include <cstdint>

namespace rota {

/// Round to nearest, ties to even; a NaN stays a (quiet) NaN. Compilers
/// vectorize loops of it.
inline uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  uint32_t quiet = bits >> 16 | 0x40;
  return static_cast<uint16_t>(value == value ? rounded : quiet);
}

inline float fromBf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

/// IEEE half precision, subnormal numbers included.
inline float fromF16(uint16_t value) {
  uint32_t sign = static_cast<uint32_t>(value & 0x8000) << 16;
  uint32_t exponent = value >> 10 & 0x1F, fraction = value & 0x3FF;
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// OCP 8-bit floating point E4M3: no infinity, subnormal numbers included.
inline float fromE4m3(uint8_t value) {
  uint32_t sign = static_cast<uint32_t>(value & 0x80) << 24;
  uint32_t exponent = value >> 3 & 0xF, fraction = value & 0x7;
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-9f;
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 0xF && fraction == 0x7)
    return std::bit_cast<float>(sign | 0x7FC00000);
  return std::bit_cast<float>(sign | (exponent + 120) << 23 | fraction << 20);
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_CONVERT_H
