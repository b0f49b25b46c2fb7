// SPDX-License-Identifier: Apache-2.0
//
// Rows of a head in memory, and walks along one of them.
#ifndef ROTA_LOWERING_KERNELS_ATTENTION_STRIDEDROWS_H
#define ROTA_LOWERING_KERNELS_ATTENTION_STRIDEDROWS_H

#include "lowering/kernels/KernelBuilder.h"

namespace rota::lowering {

/// Rows of `size` elements, `stride` elements apart.
struct StridedRows {
  Memory memory;
  int64_t stride, size;

  /// The rows from `first` on.
  StridedRows from(KernelBuilder &k, mlir::Value first) const {
    return {k.offset(memory, k.mul(first, stride)), stride, size};
  }
};

/// Calls body(d, count) for d in [0, size) by `most`, then the rest.
using ChunkBody = llvm::function_ref<void(mlir::Value d, int64_t count)>;
inline void forChunks(KernelBuilder &k, int64_t size, int64_t most,
                      ChunkBody body) {
  int64_t whole = size / most * most;
  if (whole > 0)
    k.loop(0, whole, most, [&](mlir::Value d) { body(d, most); });
  if (whole < size)
    body(k.i64(whole), size - whole);
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTION_STRIDEDROWS_H
