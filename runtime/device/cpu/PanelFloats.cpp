// SPDX-License-Identifier: Apache-2.0
#include "runtime/Abi.h"
#include "runtime/device/cpu/PanelKernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#pragma clang attribute push(                                                  \
    __attribute__((target("avx512f,avx512bw,avx512vl"))), apply_to = function)

/// 24 of 32 registers have sums. As in PanelAvx512.cpp, packed columns of B
/// take most of a second-level cache of 1 MiB, or are read from the third.
namespace rota::floats512 {
constexpr int kLanes = 16, kRows = 8, kVectors = 3;
constexpr int64_t kPackedBytes = 800 << 10, kPackedBytesWithRows = 3200 << 10;
#include "runtime/device/cpu/PanelFloats.inc"
} // namespace rota::floats512

#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)

/// Eight of 16 registers have sums: with twelve, compilers run out of them.
/// Columns of B meet half as many rows as above, so they always stay in a
/// second-level cache, of 512 KiB.
namespace rota::floats256 {
constexpr int kLanes = 8, kRows = 4, kVectors = 2;
constexpr int64_t kPackedBytes = 400 << 10, kPackedBytesWithRows = kPackedBytes;
#include "runtime/device/cpu/PanelFloats.inc"
} // namespace rota::floats256

#pragma clang attribute pop

/// A vector is two of 16 registers, eight of which have sums.
namespace rota::floats128 {
constexpr int kLanes = 8, kRows = 4, kVectors = 1;
constexpr int64_t kPackedBytes = 400 << 10, kPackedBytesWithRows = kPackedBytes;
#include "runtime/device/cpu/PanelFloats.inc"
} // namespace rota::floats128

namespace rota {

const PanelKernels *floatKernels(int32_t type, int vectorBits) {
  static const bool has512 = __builtin_cpu_supports("avx512f") &&
                             __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl");
  static const bool has256 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (vectorBits) {
  case 512:
    return has512 ? floats512::kernelsFor(type) : nullptr;
  case 256:
    return has256 ? floats256::kernelsFor(type) : nullptr;
  default:
    return floats128::kernelsFor(type);
  }
}

const PanelKernels &floatKernels(int32_t type) {
  for (int bits : {512, 256})
    if (const PanelKernels *kernels = floatKernels(type, bits))
      return *kernels;
  return *floatKernels(type, 128);
}

} // namespace rota
