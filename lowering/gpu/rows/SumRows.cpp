// SPDX-License-Identifier: Apache-2.0
//
// A block sums a few columns: its threads each take every n-th row, ascending,
// then their sums are added by halves in shared memory.
#include "lowering/gpu/rows/SumRows.h"

#include "lowering/gpu/GpuBuilder.h"
#include "lowering/gpu/GpuEmitters.h"

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

/// Enters the launch of one of `count` sums, which have `blocks` blocks each.
static void enterSum(GpuBuilder &k, unsigned count, int64_t blocks) {
  Type i8 = k.ops().getI8Type();
  Value block = k.block();
  Value from = k.argument(0, i8).base, to = k.argument(1, i8).base;
  for (unsigned i = 1; i < count; ++i) {
    Value isBefore = k.isLess(block, k.i32(i * blocks));
    from = k.select(isBefore, from, k.argument(2 * i, i8).base);
    to = k.select(isBefore, to, k.argument(2 * i + 1, i8).base);
  }
  k.enterLaunch({from, to}, k.rem(block, blocks));
}

FailureOr<std::string> emitGpuSums(KernelLibrary &library, Location loc,
                                   const SummedRows &sum, unsigned count) {
  int64_t across = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(sum.columns));
  int64_t blocks = llvm::divideCeil(sum.columns, across);
  std::string key;
  llvm::raw_string_ostream(key)
      << sum.rows << " " << sum.columns << " " << sum.element << " "
      << sum.accumulate << " " << count;
  return emitGpuKernel(library, loc, "sum", key, 2 * count, count * blocks,
                       kThreads, [&](GpuBuilder &k) {
                         if (count > 1)
                           enterSum(k, count, blocks);
                         emitSumRows(k, sum, across);
                       });
}

FailureOr<KernelCall> planSumRows(Operation *op, const SummedRows &sum,
                                  KernelArgument from, KernelArgument to,
                                  KernelLibrary &library) {
  auto symbol = emitGpuSums(library, op->getLoc(), sum, /*count=*/1);
  if (failed(symbol))
    return failure();
  return KernelCall{*symbol, sum.columns, 1, {from, to}, sum};
}

} // namespace rota::lowering
