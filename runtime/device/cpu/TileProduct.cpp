// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/TileProduct.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <type_traits>
#include <utility>

#pragma clang attribute push(                                                  \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))),           \
    apply_to = function)

namespace rota::avx512tiles {

/// Two vectors of a panel by eight rows: 16 of 32 registers have sums.
constexpr int kElements = 2, kElementBytes = 2;
constexpr int kLanes = 16, kWords = 1, kRows = 8;
constexpr int kVectors = ROTA_TILE_COLUMNS / kLanes;
constexpr PanelSizes kSizes = {.elements = kElements,
                               .elementBytes = kElementBytes,
                               .lanes = kLanes,
                               .words = kWords,
                               .rows = kRows,
                               .vectors = kVectors,
                               .rowsInPlace = 1,
                               .mostWords = 0,   // no products of matrices
                               .packedBytes = 0, // by these kernels
                               .packedBytesWithRows = 0};

#include "runtime/device/cpu/PanelAvx512.inc"

} // namespace rota::avx512tiles

#pragma clang attribute pop

namespace rota {

const PanelKernels &tileKernelsOfAvx512() { return avx512tiles::kKernels; }

void TileProduct::run(const PanelKernels &kernels) const {
  constexpr int64_t kPair = sizeof(uint32_t);
  int64_t step = kernels.sizes.rows;
  auto *panel = static_cast<const char *>(b);
  for (int64_t column = 0; column < columns; column += ROTA_TILE_COLUMNS) {
    int64_t width = std::min<int64_t>(columns - column, ROTA_TILE_COLUMNS);
    for (int64_t row = 0; row < ROTA_TILE_ROWS; row += step) {
      auto *rows = static_cast<const char *>(a) + row * strideA;
      kernels.multiply({pairs, {rows, strideA, kPair}, panel}, step, width,
                       {sums + row * stride + column, stride,
                        /*isBf16=*/false, adds});
    }
    panel += pairs * ROTA_TILE_COLUMNS * kPair;
  }
}

} // namespace rota

const RotaTiles *rotaTiles() {
  using namespace rota;
  static const bool usesAmx = panelKernels() == &panelKernelsOfAmx();
  return usesAmx ? &kTilesOf<panelKernelsOfAmx>
                 : &kTilesOf<tileKernelsOfAvx512>;
}
