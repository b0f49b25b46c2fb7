// SPDX-License-Identifier: Apache-2.0
//
// A block sums a few columns: its threads each take every n-th row, ascending,
// then their sums are added by halves in shared memory.
#include "lowering/gpu/rows/SumRows.h"

#include "lowering/gpu/GpuBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace rota::lowering {

static constexpr int64_t kThreads = 256;

/// Arguments: partial sums [rows, columns], result.
static void emitSumRows(GpuBuilder &k, const SummedRows &sum, int64_t across) {
  Type f32 = k.ops().getF32Type();
  Memory parts = k.argument(0, f32), result = k.argument(1, sum.element);
  Value thread = k.thread(), first = k.mul(k.block(), across);
  Value column = k.add(first, k.rem(thread, across));
  // Threads beyond the columns repeat the last one.
  Value read =
      sum.columns % across ? k.min(column, k.i32(sum.columns - 1)) : column;
  Memory line = k.offset(parts, k.widen(read));
  Value total = k.loop(
      k.div(thread, across), k.i32(sum.rows), kThreads / across, {k.f32(0.0f)},
      [&](Value row, ValueRange before) {
        Value index = k.mul(k.widen(row), sum.columns);
        return SmallVector<Value>{k.addf(before[0], k.load(line, index))};
      })[0];
  total = k.sumByHalves(total, kThreads, across);
  Value writes =
      k.both(k.isWithin(thread, across), k.isWithin(column, sum.columns));
  k.when(writes, [&] {
    if (sum.accumulate)
      total = k.addf(k.load(result, column), total);
    k.store(total, result, column);
  });
}

FailureOr<KernelCall> planSumRows(Operation *op, const SummedRows &sum,
                                  KernelArgument from, KernelArgument to,
                                  KernelLibrary &library) {
  int64_t across = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(sum.columns));
  std::string key;
  llvm::raw_string_ostream(key) << sum.rows << " " << sum.columns << " "
                                << sum.element << " " << sum.accumulate;
  auto symbol =
      emitGpuKernel(library, op->getLoc(), "sum", key, /*arguments=*/2,
                    llvm::divideCeil(sum.columns, across), kThreads,
                    [&](GpuBuilder &k) { emitSumRows(k, sum, across); });
  if (failed(symbol))
    return failure();
  return KernelCall{*symbol, sum.columns, 1, {from, to}};
}

} // namespace rota::lowering
