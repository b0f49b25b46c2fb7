// SPDX-License-Identifier: Apache-2.0
//
// Code that the kernels of a mixture of experts share.
#ifndef ROTA_LOWERING_KERNELS_EXPERTS_EXPERTCODE_H
#define ROTA_LOWERING_KERNELS_EXPERTS_EXPERTCODE_H

#include "lowering/kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace rota::lowering {

/// Stores an i64 as i32.
inline void storeIndex(KernelBuilder &k, mlir::Value value, Memory memory,
                       mlir::Value at) {
  auto narrow =
      mlir::arith::TruncIOp::create(k.ops(), k.ops().getI32Type(), value);
  k.store(narrow, memory, at);
}

/// Calls body(first, counts) for blocks of up to 4 vectors of a row of `width`
/// elements: `counts` has the elements of each vector.
inline void overColumns(
    KernelBuilder &k, int64_t width,
    llvm::function_ref<void(mlir::Value first, llvm::ArrayRef<int64_t> counts)>
        body) {
  constexpr int64_t kVectors = 4;
  int64_t block = kVectors * k.lanes(), whole = width / block * block;
  if (whole > 0)
    k.loop(0, whole, block, [&](mlir::Value first) {
      body(first, llvm::SmallVector<int64_t>(kVectors, k.lanes()));
    });
  llvm::SmallVector<int64_t> rest;
  for (int64_t at = whole; at < width; at += k.lanes())
    rest.push_back(std::min(k.lanes(), width - at));
  if (!rest.empty())
    body(k.i64(whole), rest);
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_EXPERTS_EXPERTCODE_H
