// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels that the runtime itself launches, one module with those of the
// model. lowering/gpu/services defines them. All of them work with any
// grid of blocks of kServiceThreads threads, but those of one block, and no
// result depends on the grid.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_SERVICEKERNELS_H
#define ROTA_RUNTIME_DEVICE_CUDA_SERVICEKERNELS_H

#include <stdint.h>

namespace rota::cuda {

inline constexpr unsigned kServiceThreads = 256;

/// (T *sum, const T *terms, i64 count), for T = f32, bf16: sum[i] += terms[i],
/// in f32 and rounded once.
inline constexpr const char *kAddKernels[] = {"rota_add_f32", "rota_add_bf16"};

/// (bf16 *rounded, const f32 *values, i64 count): to the nearest, ties to even.
inline constexpr const char *kRoundKernel = "rota_round_bf16";

/// (f64 *sum, const f32 *values, i64 count): sum[0] is the sum of the values
/// in f64, in an order that follows from `count`. One block.
inline constexpr const char *kSumKernel = "rota_sum_f64";

/// Values that become one sum.
struct SumRow {
  const float *values;
  int64_t count;
  double *sum;
};

/// (const SumRow *rows, i64 rowCount): the sum of each row, as kSumKernel.
inline constexpr const char *kSumRowsKernel = "rota_sum_rows";

/// A term of a sum: its first element, and the elements from the begin of one
/// of its rows to that of the next.
struct Term {
  const void *data;
  int64_t stride;
};

/// (const Term *terms, i64 termCount, T *out, i64 count, i64 termLength,
///  i64 outLength, i64 outStride, i32 mode), for T = f32, bf16, i32.
/// Element i of a term is at data[i / termLength * stride + i % termLength],
/// that of the result at out[i / outLength * outStride + i % outLength]. As
/// `combine` of runtime/collective/Blocks.h: terms are added in their order, in
/// f32 and rounded once (i32 in i32). `out` may lie on one of the terms where
/// both have the same rows. `terms` is memory that the GPU can read.
inline constexpr const char *kCombineKernels[] = {
    "rota_combine_f32", "rota_combine_bf16", "rota_combine_i32"};
enum CombineMode : int32_t { kSum = 0, kAccumulate = 1, kMaximum = 2 };

/// (const T *source, T *destination, i64 count, i64 sourceLength,
///  i64 sourceStride, i64 destinationLength, i64 destinationStride), for
/// elements of 2 and 4 bytes: copies element i, with rows as above.
inline constexpr const char *kCopyKernels[] = {"rota_copy_2", "rota_copy_4"};

/// (i32 *place, i32 value): *place = value. `place` may be pinned host memory.
/// One block.
inline constexpr const char *kNoteKernel = "rota_note";

/// (const f64 *squares, const i32 *order, i64 orderCount, const f32 *losses,
///  i64 lossRows, i64 lossCalls, i64 lossNumbers, f64 clip, f32 *scale,
///  f64 *result)
///
/// finishStep of runtime/device/StepEnd.h. One block.
inline constexpr const char *kFinishStepKernel = "rota_finish_step";

/// (const f32 *losses, i64 lossRows, i64 lossCalls, i64 lossNumbers,
///  f64 deviations, f64 *history, const f32 *scalars, i64 scalarCount,
///  i64 scaleNumber, i64 skipNumber, f32 *stepScalars, f64 *result)
///
/// decideStep of runtime/device/StepEnd.h. One block.
inline constexpr const char *kDecideStepKernel = "rota_decide_step";

/// (const f32 *losses, i64 lossRows, i64 lossCalls, i64 lossNumbers,
///  const f64 *factors, i64 count, f32 *cotangents)
///
/// findCotangents of runtime/device/StepEnd.h. One block.
inline constexpr const char *kCotangentsKernel = "rota_cotangents";

/// All of them.
inline constexpr const char *kServiceKernels[] = {
    kAddKernels[0],     kAddKernels[1],     kRoundKernel,
    kSumKernel,         kSumRowsKernel,     kCombineKernels[0],
    kCombineKernels[1], kCombineKernels[2], kCopyKernels[0],
    kCopyKernels[1],    kNoteKernel,        kFinishStepKernel,
    kDecideStepKernel,  kCotangentsKernel};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_SERVICEKERNELS_H
