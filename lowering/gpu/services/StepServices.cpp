// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one block that the runtime launches at the end of a step: the
// arithmetic of runtime/device/StepEnd.h with the threads of a block, sums of
// squares, numbers for the host.
#include "lowering/gpu/services/Threads.h"
#include "runtime/device/StepEnd.h"

namespace rota::services {
namespace {

/// A number of each thread of the block.
ROTA_SHARED double numbers[kThreads];

/// The block's threads. All of them read numbers, 256 at a time; the first
/// thread adds them.
struct BlockThreads {
  int64_t thread = threadOfBlock();

  bool isFirst() const { return thread == 0; }
  template <typename Body> void each(int64_t count, Body body) const {
    for (int64_t i = thread; i < count; i += kThreads)
      body(i);
  }
  template <typename Load, typename Add>
  void inOrder(int64_t count, Load load, Add add) const {
    for (int64_t base = 0; base < count; base += kThreads) {
      __syncthreads(); // the numbers before have been added
      if (base + thread < count)
        numbers[thread] = load(base + thread);
      __syncthreads();
      int64_t loaded = count - base < kThreads ? count - base : kThreads;
      if (isFirst())
        for (int64_t i = 0; i < loaded; ++i)
          add(base + i, numbers[i]);
    }
  }
  double fromFirst(double value) const {
    // Only the first thread reads numbers before this barrier.
    if (isFirst())
      numbers[0] = value;
    __syncthreads();
    return numbers[0];
  }
};

/// A thread sums every 256th value; then threads sum by halves.
void sumValues(ROTA_GLOBAL double *sum, const ROTA_GLOBAL float *values,
               int64_t count) {
  int64_t thread = threadOfBlock();
  double own = 0.0;
// A block that is alone has eight loads under way in each thread.
#pragma unroll 8
  for (int64_t i = thread; i < count; i += kThreads)
    own += values[i];
  numbers[thread] = own;
#pragma nounroll
  for (int64_t half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half)
      numbers[thread] += numbers[thread + half];
  }
  if (thread == 0)
    *sum = numbers[0];
}

} // namespace

ROTA_KERNEL rota_sum_f64(ROTA_GLOBAL double *sum,
                         const ROTA_GLOBAL float *values, int64_t count) {
  sumValues(sum, values, count);
}

ROTA_KERNEL rota_sum_rows(const cuda::SumRow *rows, int64_t rowCount) {
  for (int64_t i = blockOfGrid(); i < rowCount; i += blocksOfGrid()) {
    sumValues((ROTA_GLOBAL double *)rows[i].sum,
              (const ROTA_GLOBAL float *)rows[i].values, rows[i].count);
    __syncthreads(); // the numbers of this row have been read
  }
}

ROTA_KERNEL rota_note(int32_t *place, int32_t value) {
  if (threadOfBlock() == 0)
    *place = value;
}

ROTA_KERNEL rota_finish_step(const double *squares, const int32_t *order,
                             int64_t orderCount, const float *losses,
                             int64_t lossRows, int64_t lossCalls,
                             int64_t lossNumbers, double clip, float *scale,
                             double *result) {
  StepLosses all{losses, lossRows, lossCalls, lossNumbers};
  finishStep(BlockThreads(),
             {squares, order, orderCount, all, clip, scale, result});
}

ROTA_KERNEL rota_decide_step(const float *losses, int64_t lossRows,
                             int64_t lossCalls, int64_t lossNumbers,
                             double deviations, double *history,
                             const float *scalars, int64_t scalarCount,
                             int64_t scaleNumber, int64_t skipNumber,
                             float *stepScalars, double *result) {
  StepLosses all{losses, lossRows, lossCalls, lossNumbers};
  decideStep(BlockThreads(), {all, deviations, history, scalars, scalarCount,
                              scaleNumber, skipNumber, stepScalars, result});
}

ROTA_KERNEL rota_cotangents(const float *losses, int64_t lossRows,
                            int64_t lossCalls, int64_t lossNumbers,
                            const double *factors, int64_t count,
                            float *cotangents) {
  StepLosses all{losses, lossRows, lossCalls, lossNumbers};
  findCotangents(BlockThreads(), {all, factors, count, cotangents});
}

} // namespace rota::services
