// SPDX-License-Identifier: Apache-2.0
//
// The loop over rows that compiled code asks for.
#include "runtime/device/cpu/Parallel.h"
#include "runtime/trace/Profile.h"

#include <algorithm>

/// Pieces for each thread: enough that threads end together although they do
/// not start together, few enough that a piece is worth a call.
static constexpr int64_t kPiecesPerThread = 8;

void rotaParallelFor(RotaContext *context, RotaKernel kernel, void *const *args,
                     int64_t rows, int64_t grain) {
  rota::KernelTimer timer(context, kernel, rows);
  grain = std::max<int64_t>(grain, 1);
  int64_t grains = (rows + grain - 1) / grain;
  int64_t threads = rota::threadLimit(context);
  int64_t pieces =
      threads == 1 ? 1 : std::min(grains, threads * kPiecesPerThread);
  if (pieces <= 1) {
    if (rows > 0)
      kernel(args, 0, rows);
    return;
  }
  rota::parallelPieces(context, pieces, [&](int64_t piece) {
    int64_t begin = grains * piece / pieces * grain;
    int64_t end = std::min(rows, grains * (piece + 1) / pieces * grain);
    kernel(args, begin, end);
  });
}
