// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelKernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <type_traits>
#include <utility>

#pragma clang attribute push(                                                  \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))),           \
    apply_to = function)

namespace rota::avx512 {

/// 24 of 32 registers have sums: as many products for each vector of B, and of
/// A, as registers allow.
constexpr int kElements = 2, kElementBytes = 2;
constexpr int kLanes = 16, kWords = 1, kRows = 8, kVectors = 3;

/// Measured on a Zen 4. Packed columns of B take most of a second-level cache
/// of 1 MiB. Where rows of A are packed, B is read from the third-level cache,
/// which costs 1 % at most; with columns for the second-level cache, rows of A
/// would be packed four times as often.
constexpr PanelSizes kSizes = {.elements = kElements,
                               .elementBytes = kElementBytes,
                               .lanes = kLanes,
                               .words = kWords,
                               .rows = kRows,
                               .vectors = kVectors,
                               .rowsInPlace = 1,
                               .mostWords = 512,
                               .packedBytes = 800 << 10,
                               .packedBytesWithRows = 3200 << 10,
                               .tiling = {.unitM = 64,
                                          .unitN = kVectors * kLanes,
                                          .mostM = 1024,
                                          .mostN = 1536,
                                          .leastWork = int64_t(1) << 23,
                                          .packB = 12,
                                          .readA = 3,
                                          .packA = 12}};

#include "runtime/device/cpu/PanelAvx512.inc"

} // namespace rota::avx512

#pragma clang attribute pop

const rota::PanelKernels *rota::panelKernelsOfAvx512() {
  bool has = __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bf16");
  return has ? &avx512::kKernels : nullptr;
}
