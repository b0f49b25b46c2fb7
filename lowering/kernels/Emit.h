// SPDX-License-Identifier: Apache-2.0
//
// Helpers of all kernel emitters: the frame of a native kernel function, and
// memory accesses in f32 vectors for every stored type.
#ifndef ROTA_LOWERING_KERNELS_EMIT_H
#define ROTA_LOWERING_KERNELS_EMIT_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace rota::lowering {

/// Emits `void @symbol(ptr args, i64 begin, i64 end)` at the builder's
/// insertion point. `body` builds its code; `pointers` are the `count` pointers
/// that `args` holds, `begin` and `end` the rows (i64) that this call does.
void emitKernelFunction(
    mlir::OpBuilder &builder, llvm::StringRef symbol, unsigned count,
    llvm::function_ref<void(mlir::ImplicitLocOpBuilder &b,
                            mlir::ValueRange pointers, mlir::Value begin,
                            mlir::Value end)>
        body);

/// An i64 constant.
mlir::Value constant(mlir::ImplicitLocOpBuilder &b, int64_t value);

/// An f32 constant; with a width of 1 or more, in every element of a
/// vector<width>.
mlir::Value constant(mlir::ImplicitLocOpBuilder &b, float value,
                     int64_t width = 0);

/// Bytes of an element in memory.
inline unsigned bytesOf(mlir::Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

/// The address of an uninitialized array on the stack, at a cache line. In the
/// function's first block.
mlir::Value stackArray(mlir::ImplicitLocOpBuilder &b, mlir::Type element,
                       int64_t elements);

/// The address of the element with this (i64) index of an array of `element`.
mlir::Value address(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                    mlir::Type element, mlir::Value index);

/// Loads the element at `index` of an array of `element` or, with a width of 1
/// or more, that many elements from there as a vector. The address of a vector
/// is a multiple of its size, of `alignment` bytes at most, but at least of an
/// element.
mlir::Value load(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                 mlir::Type element, mlir::Value index, int64_t width = 0,
                 int64_t alignment = 0);

/// Stores a scalar or vector from `index` on of an array of its elements.
void store(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
           mlir::Value pointer, mlir::Value index, int64_t alignment = 0);

/// load and store with bf16 widened to f32 when read and rounded (to nearest
/// even) when written; f32 and i32 stay.
mlir::Value loadWide(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                     mlir::Type element, mlir::Value index, int64_t width = 0,
                     int64_t alignment = 0);
void storeRounded(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                  mlir::Value pointer, mlir::Type element, mlir::Value index,
                  int64_t alignment = 0);

/// A scalar in every element of a vector.
mlir::Value splat(mlir::ImplicitLocOpBuilder &b, mlir::Value scalar,
                  int64_t width);

/// Combines the elements of a vector whose width is a power of two by halves:
/// an order that depends on the width alone.
mlir::Value
combine(mlir::ImplicitLocOpBuilder &b, mlir::Value vector,
        llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combiner);
mlir::Value sumOf(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);

/// `for (i = begin; i < end; i += step)` over i64 with values carried from
/// iteration to iteration; returns their last.
llvm::SmallVector<mlir::Value> emitLoop(
    mlir::ImplicitLocOpBuilder &b, mlir::Value begin, mlir::Value end,
    mlir::Value step, mlir::ValueRange carried,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value index,
                                                      mlir::ValueRange carried)>
        body);

/// Elements in a vector register at most: what an f32 row is cut into. Two
/// AVX-512 registers, enough to hide the latency of an addition.
inline constexpr int64_t kVectorWidth = 32;

/// A run of vectors of one width in a row: `count` of them from `begin` on.
struct Segment {
  int64_t begin, count, width;
};

/// Cuts `columns` into vectors: as many of `width` as there are, then smaller
/// powers of two.
llvm::SmallVector<Segment> segments(int64_t columns,
                                    int64_t width = kVectorWidth);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_EMIT_H
