// SPDX-License-Identifier: Apache-2.0
//
// The loop over rows that compiled code asks for.
#include "runtime/device/cpu/Parallel.h"
#include "runtime/trace/Profile.h"

#include <algorithm>

namespace rota {

/// Pieces for each thread: enough that all threads end at about the same time
/// although they start at different times, few enough that calls cost little.
static constexpr int64_t kPiecesPerThread = 8;

/// A sleeping helper needs about 30 us to wake up: loops that take less than
/// this on one thread do not gain from one.
static constexpr double kWorthHelp = 50e-6;

LoopCosts::Cost &LoopCosts::find(RotaKernel kernel, int64_t rows) {
  auto mixed = reinterpret_cast<uintptr_t>(kernel) / 16 +
               static_cast<uint64_t>(rows) * 0x9E3779B97F4A7C15ull;
  Cost &cost = table[(mixed ^ mixed >> 32) % table.size()];
  if (cost.kernel != kernel || cost.rows != rows)
    cost = {kernel, rows, kWorthHelp};
  return cost;
}

/// Runs the rows in pieces on all threads that are free.
static void runInPieces(RotaContext *context, RotaKernel kernel,
                        void *const *args, int64_t rows, int64_t grain) {
  int64_t grains = (rows + grain - 1) / grain;
  int64_t pieces = std::min(grains, threadLimit(context) * kPiecesPerThread);
  parallelPieces(context, pieces, [&](int64_t piece) {
    int64_t begin = grains * piece / pieces * grain;
    int64_t end = std::min(rows, grains * (piece + 1) / pieces * grain);
    kernel(args, begin, end);
  });
}

} // namespace rota

void rotaParallelFor(RotaContext *context, RotaKernel kernel, void *const *args,
                     int64_t rows, int64_t grain) {
  using Clock = std::chrono::steady_clock;
  rota::KernelTimer timer(context, kernel, rows);
  grain = std::max<int64_t>(grain, 1);
  if (rows <= 0)
    return;
  if (rota::threadLimit(context) == 1 || rows <= grain)
    return kernel(args, 0, rows);
  rota::LoopCosts::Cost &cost = context->loopCosts.find(kernel, rows);
  bool alone = cost.seconds < rota::kWorthHelp;
  auto start = Clock::now();
  if (alone)
    kernel(args, 0, rows);
  else
    rota::runInPieces(context, kernel, args, rows, grain);
  // With helpers the loop is between 1 and the number of threads times as fast.
  // The factor 1.5 is an estimate on the side of using helpers again.
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  cost.seconds = alone ? seconds : 1.5 * seconds;
}
