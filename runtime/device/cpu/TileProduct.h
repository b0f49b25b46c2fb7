// SPDX-License-Identifier: Apache-2.0
//
// The products of RotaTiles by PanelKernels whose panels have
// ROTA_TILE_COLUMNS columns.
#ifndef ROTA_RUNTIME_DEVICE_CPU_TILEPRODUCT_H
#define ROTA_RUNTIME_DEVICE_CPU_TILEPRODUCT_H

#include "runtime/TileAbi.h"
#include "runtime/device/cpu/PanelKernels.h"

namespace rota {

/// Product of RotaTiles::multiply.
struct TileProduct {
  const void *a;
  int64_t strideA;
  const void *b;
  int64_t pairs;
  float *sums;
  int64_t stride, columns;
  bool adds;

  void run(const PanelKernels &kernels) const;
};

/// RotaTiles by the kernels that `kKernels` returns.
template <const PanelKernels &(*kKernels)()>
inline constexpr RotaTiles kTilesOf = {
    [] {
      if (auto *begin = kKernels().begin)
        begin();
    },
    [] {
      if (auto *end = kKernels().end)
        end();
    },
    [](const void *a, int64_t strideA, const void *b, int64_t pairs,
       float *sums, int64_t stride, int64_t columns, int64_t adds) {
      TileProduct{a, strideA, b, pairs, sums, stride, columns, adds != 0}.run(
          kKernels());
    }};

/// Kernels for AVX-512 BF16 with panels of ROTA_TILE_COLUMNS columns.
const PanelKernels &tileKernelsOfAvx512();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_TILEPRODUCT_H
