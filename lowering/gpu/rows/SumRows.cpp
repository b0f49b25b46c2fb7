// SPDX-License-Identifier: Apache-2.0
//
// A block sums a few columns: its threads each take every n-th row, ascending,
// then their sums are added by halves in shared memory. The order of a column's
// sum does not depend on the columns of a block, which are few: so many blocks
// have work, and a thread has many rows in flight.
#include "lowering/gpu/rows/SumRows.h"

#include "lowering/gpu/GpuBuilder.h"
#include "lowering/gpu/GpuEmitters.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace rota::lowering {

namespace {
/// Blocks of a multiprocessor that leave registers for all rows in flight.
constexpr int64_t kResidentBlocks = 8;

/// The division of sums among threads.
struct SumForm {
  explicit SumForm(const SummedRows &sum) {
    int64_t wide = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(sum.columns));
    lines = kRowThreads / wide;
    across = std::min(kColumns, wide);
    blocks = llvm::divideCeil(sum.columns, across);
  }
  int64_t threads() const { return lines * across; }

  int64_t lines;  // threads of a column
  int64_t across; // columns of a block
  int64_t blocks;

private:
  /// Threads that would have a warp's columns. Bits depend on it.
  static constexpr int64_t kRowThreads = 256;
  /// Columns of a block: 32 bytes, which memory moves at a time.
  static constexpr int64_t kColumns = 8;
};
} // namespace

/// The sum of the rows of `line` that this thread has, from its row `first` on.
static Value addRows(GpuBuilder &k, const SummedRows &sum, int64_t lines,
                     Memory line, Value first) {
  SmallVector<Value> carried{first, k.f32(0.0f)};
  // Rows that a thread loads before it adds them, as long as there are as many.
  for (int64_t inFlight : {64, 8, 1}) {
    int64_t beyond = (inFlight - 1) * lines;
    if (sum.rows <= beyond)
      continue;
    carried =
        k.loop(carried[0], k.i32(sum.rows - beyond), inFlight * lines, carried,
               [&](Value row, ValueRange before) {
                 SmallVector<Value> loaded;
                 for (int64_t i = 0; i < inFlight; ++i) {
                   Value index =
                       k.mul(k.widen(k.add(row, i * lines)), sum.columns);
                   loaded.push_back(k.load(line, index));
                 }
                 Value total = before[1];
                 for (Value value : loaded)
                   total = k.addf(total, value);
                 return SmallVector<Value>{k.add(row, inFlight * lines), total};
               });
    if (sum.rows % (inFlight * lines) == 0)
      break;
  }
  return carried[1];
}

/// Arguments: partial sums [rows, columns], result.
static void emitSumRows(GpuBuilder &k, const SummedRows &sum,
                        const SumForm &form) {
  int64_t across = form.across;
  Type f32 = k.ops().getF32Type();
  Memory parts = k.argument(0, f32), result = k.argument(1, sum.element);
  Value thread = k.thread(), first = k.mul(k.block(), across);
  Value column = k.add(first, k.rem(thread, across));
  // Threads beyond the columns repeat the last one.
  Value read =
      sum.columns % across ? k.min(column, k.i32(sum.columns - 1)) : column;
  Memory line = k.offset(parts, k.widen(read));
  Value total = addRows(k, sum, form.lines, line, k.div(thread, across));
  total = k.sumByHalves(total, form.threads(), across);
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
  SumForm form(sum);
  std::string key;
  llvm::raw_string_ostream(key)
      << sum.rows << " " << sum.columns << " " << sum.element << " "
      << sum.accumulate << " " << count;
  return emitGpuKernel(library, loc, "sum", key, 2 * count, count * form.blocks,
                       form.threads(), [&](GpuBuilder &k) {
                         leaveRegistersFor(k, kResidentBlocks);
                         if (count > 1)
                           enterSum(k, count, form.blocks);
                         emitSumRows(k, sum, form);
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
