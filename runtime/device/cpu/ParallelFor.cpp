// SPDX-License-Identifier: Apache-2.0
//
// The loop over rows that compiled code asks for.
#include "runtime/device/cpu/Parallel.h"
#include "runtime/trace/Profile.h"

#include <algorithm>

namespace rota {

/// Pieces for each thread: enough that threads end together although they do
/// not start together, few enough that a piece is worth a call.
static constexpr int64_t kPiecesPerThread = 8;

/// A helper that sleeps needs about 30 us to come: loops that are shorter than
/// this on one thread do not gain from it.
static constexpr double kWorthHelp = 50e-6;

LoopCosts::Cost &LoopCosts::find(RotaKernel kernel, int64_t rows) {
  auto mixed = reinterpret_cast<uintptr_t>(kernel) / 16 +
               static_cast<uint64_t>(rows) * 0x9E3779B97F4A7C15ull;
  Cost &cost = table[(mixed ^ mixed >> 32) % table.size()];
  if (cost.kernel != kernel || cost.rows != rows)
    cost = {kernel, rows, kWorthHelp};
  return cost;
}

/// Runs the rows in pieces on all threads that come.
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
  // With help it took less time than alone: between 1 and the number of threads
  // times less. 1.5 is a guess that errs towards asking for help again.
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  cost.seconds = alone ? seconds : 1.5 * seconds;
}
