// SPDX-License-Identifier: Apache-2.0
//
// Short names for GPU kernels: threads and blocks, accesses of up to 16 bytes,
// shared memory, and what threads combine. A kernel has one dimension of blocks
// and one of threads.
#ifndef ROTA_LOWERING_GPU_GPUBUILDER_H
#define ROTA_LOWERING_GPU_GPUBUILDER_H

#include "lowering/kernels/KernelBuilder.h"

namespace rota::lowering {

/// Threads of a warp.
inline constexpr int64_t kWarp = 32;
/// Bytes of the largest access of one thread. Every buffer begins at a multiple
/// of this.
inline constexpr int64_t kAccessBytes = 16;
/// Threads of a block where each does its work alone.
inline constexpr int64_t kAloneThreads = 256;

/// The elements of a chunk of rows of `columns`: one access of the narrowest
/// element, of `bits`, or a smaller power of two that divides the columns, so
/// that every chunk of every row is aligned.
int64_t chunkWidth(int64_t columns, int64_t bits);
inline int64_t chunkWidth(int64_t columns, mlir::Type element) {
  return chunkWidth(columns, element.getIntOrFloatBitWidth());
}

class GpuBuilder : public ValueBuilder {
public:
  GpuBuilder(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange pointers)
      : ValueBuilder(b), pointers(pointers.begin(), pointers.end()) {}

  /// From here on arguments and number of the block are these.
  void enterLaunch(llvm::ArrayRef<mlir::Value> arguments, mlir::Value block) {
    pointers.assign(arguments.begin(), arguments.end());
    ownBlock = block;
  }

  /// The buffer of argument `i`, whose elements are `element`.
  Memory argument(unsigned i, mlir::Type element);
  Memory offset(Memory memory, mlir::Value by);

  // i32.
  mlir::Value thread(); // in the block
  mlir::Value block();
  mlir::Value widen(mlir::Value index);  // to i64, of what is not negative
  mlir::Value narrow(mlir::Value index); // to i32
  /// Calls body(number) where this thread has one of `count` numbers; with
  /// `threads` threads a block there is a thread for each. The number is i32
  /// where that is enough.
  void each(int64_t count, int64_t threads, Body body);

  // Memory. Vectors are aligned to their size, or to kAccessBytes.
  mlir::Value load(Memory memory, mlir::Value index);
  mlir::Value loadIndex(Memory memory, mlir::Value index); // an i32 as i64
  mlir::Value loadVector(Memory memory, mlir::Value index, int64_t width);
  void store(mlir::Value value, Memory memory, mlir::Value index);
  /// The first `count` elements of a vector of `width`, one by one where they
  /// are fewer. A load yields `filler` in the others.
  mlir::Value loadPart(Memory memory, mlir::Value index, int64_t count,
                       int64_t width, float filler);
  void storePart(mlir::Value vector, Memory memory, mlir::Value index,
                 int64_t count);
  /// A scalar in every element of a vector.
  mlir::Value splat(mlir::Value scalar, int64_t width);
  mlir::Value splat(float scalar, int64_t width);
  mlir::Value extract(mlir::Value vector, int64_t element);
  /// The elements of a vector as one value, by halves.
  mlir::Value combineElements(
      mlir::Value vector,
      llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> join);
  /// `value`, element i of which is number `index` + i (i32), with `filler`
  /// from `end` on.
  mlir::Value before(mlir::Value end, mlir::Value index, mlir::Value value,
                     float filler);
  mlir::Value exp(mlir::Value value);
  /// The greater of two; of a number and none the number.
  mlir::Value largest(mlir::Value a, mlir::Value b);

  /// Shared memory of its own for `count` elements, aligned to kAccessBytes.
  Memory allocateShared(int64_t count, mlir::Type element);
  int64_t getSharedBytes() const { return sharedBytes; }
  void barrier();
  /// The value of the thread whose number differs in the bits of `distance`,
  /// below kWarp. All threads of the warp take part.
  mlir::Value exchange(mlir::Value value, int64_t distance);

  using Combiner = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::ValueRange left, mlir::ValueRange right)>;
  /// Combines f32 values of `threads` threads, whose first is a multiple of
  /// `threads`: a power of two up to kWarp, or the whole block. Every one gets
  /// the result, in an order that depends on `threads` alone. All threads of
  /// the block take part. In a loop, `turn` is 0 and 1 in turns (i32).
  llvm::SmallVector<mlir::Value> combineThreads(mlir::ValueRange values,
                                                int64_t threads, Combiner join,
                                                mlir::Value turn = {});

  /// The sum of the values of the threads whose numbers are equal modulo
  /// `across`, a power of two, in the first `across` threads: by halves, in
  /// shared memory. The block has `threads` threads, a power of two.
  mlir::Value sumByHalves(mlir::Value value, int64_t threads, int64_t across);
  /// The sum of the values, i32, of the threads up to this one, in shared
  /// memory. The block has `threads` threads, and all of them take part.
  mlir::Value sumUpToHere(mlir::Value value, int64_t threads);

private:
  llvm::SmallVector<mlir::Value> pointers;
  mlir::Value ownBlock; // null: the GPU's
  int64_t sharedBytes = 0;
};

/// The end of the name of a kernel's form for chips with instructions of
/// warpgroups, beside the form for all chips.
inline constexpr llvm::StringRef kWarpgroupForm = "$warpgroup";

/// The symbol of the kernel with this key, with `arguments` pointers, for
/// `blocks` blocks (0: any number) of `threads` threads; `body` writes its code
/// when the library lacks it, and `grouped`, if given, that of its form for
/// warpgroups. All code is at `loc`.
llvm::FailureOr<std::string>
emitGpuKernel(KernelLibrary &library, mlir::Location loc,
              llvm::StringRef prefix, llvm::StringRef key, unsigned arguments,
              int64_t blocks, int64_t threads,
              llvm::function_ref<void(GpuBuilder &k)> body,
              llvm::function_ref<void(GpuBuilder &k)> grouped = {});

/// The symbol of a kernel with a thread for each of `count` numbers, whose code
/// is body(k, number); else as emitGpuKernel.
llvm::FailureOr<std::string>
emitEach(KernelLibrary &library, mlir::Location loc, llvm::StringRef prefix,
         llvm::StringRef key, unsigned arguments, int64_t count,
         llvm::function_ref<void(GpuBuilder &k, mlir::Value number)> body);

/// Lets the kernel have the registers of a multiprocessor that holds no more
/// than `blocks` blocks. By itself ptxas rather spills some than misses one of
/// its steps (128).
void leaveRegistersFor(GpuBuilder &k, int64_t blocks);

/// The dynamic shared memory of the kernels in the `gpu.module` around `b`:
/// one symbol for all, aligned for every kind of access.
mlir::Value dynamicSharedMemory(mlir::ImplicitLocOpBuilder &b);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_GPUBUILDER_H
