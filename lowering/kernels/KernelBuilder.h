// SPDX-License-Identifier: Apache-2.0
//
// Short names over Emit.h for vector code that is written by hand. Indices and
// sizes are i64 in elements. Values are f32 scalars or one vector register of
// the target. Buffers may hold bf16. Accesses of less than a vector are masked.
#ifndef ROTA_LOWERING_KERNELS_KERNELBUILDER_H
#define ROTA_LOWERING_KERNELS_KERNELBUILDER_H

#include "lowering/kernels/KernelPlan.h"
#include "lowering/kernels/ValueBuilder.h"

namespace rota::lowering {

/// Elements in memory: an address (!llvm.ptr) and f32, bf16 or i32.
struct Memory {
  mlir::Value base;
  mlir::Type element;
};

class KernelBuilder : public ValueBuilder {
public:
  /// Writes into the function that emitKernelFunction has opened, at `b`.
  KernelBuilder(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange pointers,
                mlir::Value begin, mlir::Value end, unsigned vectorBits);

  int64_t lanes() const { return laneCount; }
  mlir::Value begin() const { return beginRow; }
  mlir::Value end() const { return endRow; }

  /// The buffer of argument `i`, whose elements are `element`.
  Memory argument(unsigned i, mlir::Type element);
  /// Stack memory for f32 elements, aligned to a cache line.
  Memory stack(int64_t elements);
  Memory offset(Memory memory, mlir::Value by);
  Memory offset(Memory memory, int64_t by);

  // Memory. A vector load of `count` < lanes elements yields `filler` in the
  // lanes beyond; a store leaves memory there alone.
  mlir::Value load(Memory memory, mlir::Value index);
  mlir::Value loadIndex(Memory memory, mlir::Value index); // i32 to i64
  void store(mlir::Value value, Memory memory, mlir::Value index);
  mlir::Value loadVector(Memory memory, mlir::Value index, int64_t count,
                         float filler = 0.0f);
  /// `value`, lane i of which is number `index` + i, with `filler` from `end`
  /// on.
  mlir::Value before(mlir::Value end, mlir::Value index, mlir::Value value,
                     float filler);
  void storeVector(mlir::Value value, Memory memory, mlir::Value index,
                   int64_t count);
  void copy(Memory from, Memory to, int64_t bytes);
  void clear(Memory memory, int64_t bytes); // to zeros

  // f32, scalars or vectors alike.
  mlir::Value splat(float value);
  mlir::Value broadcast(mlir::Value scalar);
  /// e to the power of a vector or scalar of at most 88; 0 below -87.3.
  /// Relative error below 2e-7.
  mlir::Value exp(mlir::Value value);
  /// Sum or maximum of all lanes, by halves.
  mlir::Value sumLanes(mlir::Value vector);
  mlir::Value maxLanes(mlir::Value vector);

  /// Transposes lanes() vectors of lanes() elements in registers.
  void transpose(llvm::MutableArrayRef<mlir::Value> square);
  mlir::Value shuffle(mlir::Value a, mlir::Value b,
                      llvm::ArrayRef<int64_t> lanesOfBoth);
  /// `first`, `first` + 1, ... as i32.
  mlir::Value countFrom(mlir::Value first);
  mlir::Value broadcastIndex(mlir::Value index);

private:
  mlir::Value like(mlir::Value shape, float value);
  mlir::Value address(Memory memory, mlir::Value index);
  mlir::Value mask(int64_t count);

  int64_t laneCount;
  mlir::VectorType vecType, intVecType;
  mlir::ValueRange pointers;
  mlir::Value beginRow, endRow;
  mlir::Block *entry;
};

/// The symbol of the kernel with this key, of `arguments` arguments; `body`
/// writes its code when the library lacks it.
llvm::FailureOr<std::string>
emitDedicated(KernelLibrary &library, llvm::StringRef prefix,
              llvm::StringRef key, unsigned arguments,
              llvm::function_ref<void(KernelBuilder &k)> body);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_KERNELBUILDER_H
