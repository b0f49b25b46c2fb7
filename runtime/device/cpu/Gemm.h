// SPDX-License-Identifier: Apache-2.0
//
// The tiles that rotaGemm (runtime/Abi.h) cuts a product into, any of which any
// thread may run. The bits do not depend on the number of threads: where the
// cut does, those of a PanelProduct do not depend on the cut.
#ifndef ROTA_RUNTIME_DEVICE_CPU_GEMM_H
#define ROTA_RUNTIME_DEVICE_CPU_GEMM_H

#include "runtime/Abi.h"

#include <array>
#include <cstdint>

namespace rota {

/// C is cut into countM x countN tiles of tileM x tileN elements; the last of a
/// row or column may be smaller. k is never cut.
struct GemmTiles {
  int64_t tileM, tileN;
  int64_t countM, countN;
};

/// `threads`: the most that may run tiles.
GemmTiles tileGemm(const RotaGemm &gemm, int threads);

/// The tiles of a product as products of their own: an inner one, the last of a
/// row, the last of a column, and the last of all. Of a product without faults
/// whose sizes are not 0.
std::array<RotaGemm, 4> tilesOf(const RotaGemm &gemm, const GemmTiles &cut);

/// The result of an empty sum: C becomes zero unless it accumulates.
void clearResult(const RotaGemm &gemm, void *c);

/// rotaGemm on host memory. A fault is reported to the context.
void multiplyOnCpu(RotaContext *context, const RotaGemm &gemm, const void *a,
                   const void *b, void *c);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_GEMM_H
