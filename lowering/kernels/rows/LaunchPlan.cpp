// SPDX-License-Identifier: Apache-2.0
//
// A launch of a fused kernel as calls: the kernel over all rows and, for each
// result that is summed over the rows, a kernel that adds up the partial sums.
#include "lowering/kernels/KernelPlan.h"
#include "lowering/kernels/rows/RowKernel.h"

using namespace mlir;
using mlir::rota::KernelOp;
using mlir::rota::LaunchOp;

namespace rota::lowering {

/// The most blocks of rows with partial sums of their own. The division into
/// blocks depends on this number and the number of rows alone, and so do the
/// bits of the sums.
static constexpr int64_t kBlocks = 64;
/// The fewest elements that are worth a piece of their own.
static constexpr int64_t kElements = 16384;

namespace {
/// One launch while it is planned.
struct PlannedLaunch {
  LaunchOp op;
  KernelOp kernel;
  SmallVector<bool> accumulate;
  int64_t rows;

  bool isSum(unsigned result) {
    return cast<mlir::rota::ResultKindAttr>(kernel.getResultKinds()[result])
               .getValue() == mlir::rota::ResultKind::Sum;
  }
  bool hasSums() {
    return llvm::any_of(llvm::seq<unsigned>(0, op.getNumResults()),
                        [&](unsigned result) { return isSum(result); });
  }
  int64_t rowsPerBlock() const { return llvm::divideCeil(rows, kBlocks); }
  int64_t blocks() const { return llvm::divideCeil(rows, rowsPerBlock()); }
  int64_t elements(unsigned result) {
    return cast<RankedTensorType>(op.getResult(result).getType())
        .getNumElements();
  }
};
} // namespace

/// Zeroes `count` f32 at `pointer`.
static void emitZeros(ImplicitLocOpBuilder &b, Value pointer, int64_t count) {
  for (const Segment &segment : segments(count)) {
    Value zeros = constant(b, 0.0f, segment.width);
    Value end = constant(b, segment.begin + segment.count * segment.width);
    emitLoop(b, constant(b, segment.begin), end, constant(b, segment.width), {},
             [&](Value column, ValueRange) -> SmallVector<Value> {
               store(b, zeros, pointer, column);
               return {};
             });
  }
}

/// Rows [begin, end), which are whole blocks but for the last: each block sums
/// its rows in order into its own row of partial sums.
static void emitBlocks(ImplicitLocOpBuilder &b, PlannedLaunch &launch,
                       RowKernel &row, ValueRange results, Value begin,
                       Value end) {
  Value one = constant(b, int64_t(1));
  Value height = constant(b, launch.rowsPerBlock());
  Value first = arith::DivUIOp::create(b, begin, height);
  Value last = arith::CeilDivUIOp::create(b, end, height);
  emitLoop(b, first, last, one, {}, [&](Value block, ValueRange) {
    SmallVector<Value> places(results);
    for (auto [index, place] : llvm::enumerate(places))
      if (launch.isSum(index)) {
        int64_t count = launch.elements(index);
        Value offset = arith::MulIOp::create(b, block, constant(b, count));
        place = address(b, place, b.getF32Type(), offset);
        emitZeros(b, place, count);
      }
    Value from = arith::MulIOp::create(b, block, height);
    Value to =
        arith::MinUIOp::create(b, end, arith::AddIOp::create(b, from, height));
    emitLoop(b, from, to, one, {}, [&](Value index, ValueRange) {
      row.emitRow(b, index, places);
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

static LogicalResult emitRows(OpBuilder &builder, StringRef symbol,
                              PlannedLaunch &launch, RowKernel &row) {
  unsigned inputs = launch.op.getInputs().size();
  emitKernelFunction(builder, symbol, inputs + launch.op.getNumResults(),
                     [&](ImplicitLocOpBuilder &b, ValueRange pointers,
                         Value begin, Value end) {
                       row.begin(b, pointers.take_front(inputs),
                                 launch.accumulate);
                       ValueRange results = pointers.drop_front(inputs);
                       if (launch.hasSums())
                         return emitBlocks(b, launch, row, results, begin, end);
                       emitLoop(b, begin, end, constant(b, int64_t(1)), {},
                                [&](Value index, ValueRange) {
                                  row.emitRow(b, index, results);
                                  return SmallVector<Value>();
                                });
                     });
  return success();
}

/// Columns [begin, end) of a sum: partial sums [blocks, columns] added up in
/// order, then rounded or added to the result.
static LogicalResult emitFinish(OpBuilder &builder, StringRef symbol,
                                int64_t blocks, int64_t columns, Type element,
                                bool accumulate) {
  auto emitColumns = [&](ImplicitLocOpBuilder &b, ValueRange pointers,
                         Value column, int64_t width) {
    Value zero = constant(b, 0.0f, width);
    Value sum = emitLoop(
        b, constant(b, int64_t(0)), constant(b, blocks),
        constant(b, int64_t(1)), zero,
        [&](Value block, ValueRange carried) -> SmallVector<Value> {
          Value index = arith::MulIOp::create(b, block, constant(b, columns));
          index = arith::AddIOp::create(b, index, column);
          Value part = load(b, pointers[0], b.getF32Type(), index, width);
          return {arith::AddFOp::create(b, carried[0], part)};
        })[0];
    if (accumulate)
      sum = arith::AddFOp::create(
          b, loadWide(b, pointers[1], element, column, width), sum);
    storeRounded(b, sum, pointers[1], element, column);
    return SmallVector<Value>();
  };
  emitKernelFunction(
      builder, symbol, 2,
      [&](ImplicitLocOpBuilder &b, ValueRange pointers, Value begin,
          Value end) {
        Value width = constant(b, kVectorWidth);
        Value count = arith::SubIOp::create(b, end, begin);
        Value rest = arith::RemUIOp::create(b, count, width);
        Value middle = arith::SubIOp::create(b, end, rest);
        emitLoop(b, begin, middle, width, {}, [&](Value column, ValueRange) {
          return emitColumns(b, pointers, column, kVectorWidth);
        });
        emitLoop(b, middle, end, constant(b, int64_t(1)), {},
                 [&](Value column, ValueRange) {
                   return emitColumns(b, pointers, column, 0);
                 });
      });
  return success();
}

/// The kernel itself; results of kind `sum` go to temporaries.
static LogicalResult planRows(PlannedLaunch &launch, KernelLibrary &library,
                              KernelPlan &plan) {
  FailureOr<RowBody> body = RowBody::get(launch.op);
  if (failed(body))
    return failure();
  RowKernel row(*body);
  std::string key;
  llvm::raw_string_ostream stream(key);
  launch.kernel->print(stream, OpPrintingFlags().useLocalScope());
  for (bool flag : launch.accumulate)
    stream << (flag ? " add" : " set");
  if (launch.hasSums())
    stream << " rows " << launch.rowsPerBlock();
  stream << " every " << body->getStride();
  // The library numbers kernels itself: "rms_norm_3" becomes "rms_norm".
  StringRef name = launch.kernel.getSymName().rtrim("0123456789").rtrim('_');
  auto symbol =
      library.getOrEmit(name, key, [&](OpBuilder &builder, StringRef name) {
        return emitRows(builder, name, launch, row);
      });
  if (failed(symbol))
    return failure();

  KernelCall call{*symbol, launch.rows, 1, {}};
  int64_t columns = std::max<int64_t>(body->getColumns(), 1);
  call.grain = launch.hasSums() ? launch.rowsPerBlock()
                                : std::max<int64_t>(kElements / columns, 1);
  for (unsigned i = 0; i < launch.op.getInputs().size(); ++i)
    call.arguments.push_back({KernelArgument::Kind::Operand, i});
  for (unsigned i = 0; i < launch.op.getNumResults(); ++i) {
    if (!launch.isSum(i)) {
      call.arguments.push_back({KernelArgument::Kind::Result, i});
      continue;
    }
    call.arguments.push_back(
        {KernelArgument::Kind::Temporary, unsigned(plan.temporaries.size())});
    plan.temporaries.push_back(launch.blocks() * launch.elements(i) * 4);
  }
  plan.calls.push_back(std::move(call));
  return success();
}

/// One call per result of kind `sum`.
static LogicalResult planSums(PlannedLaunch &launch, KernelLibrary &library,
                              KernelPlan &plan) {
  unsigned temporary = 0;
  for (unsigned i = 0; i < launch.op.getNumResults(); ++i) {
    if (!launch.isSum(i))
      continue;
    int64_t columns = launch.elements(i);
    Type element = getElementTypeOrSelf(launch.op.getResult(i).getType());
    bool accumulate = launch.accumulate[i];
    std::string key;
    llvm::raw_string_ostream(key) << launch.blocks() << " " << columns << " "
                                  << element << " " << accumulate;
    auto symbol =
        library.getOrEmit("sum", key, [&](OpBuilder &builder, StringRef name) {
          return emitFinish(builder, name, launch.blocks(), columns, element,
                            accumulate);
        });
    if (failed(symbol))
      return failure();
    KernelCall call{*symbol, columns, 8 * kVectorWidth, {}};
    call.arguments = {{KernelArgument::Kind::Temporary, temporary++},
                      {KernelArgument::Kind::Result, i}};
    plan.calls.push_back(std::move(call));
  }
  return success();
}

static FailureOr<KernelPlan> planLaunch(LaunchOp op, ArrayRef<bool> accumulate,
                                        KernelLibrary &library) {
  KernelOp kernel = op.getKernelOp();
  if (!kernel)
    return op.emitOpError("expected a 'rota.kernel', '")
           << op.getKernel() << "' is none";
  PlannedLaunch launch{op, kernel, SmallVector<bool>(accumulate),
                       int64_t(op.getRows())};
  KernelPlan plan;
  if (failed(planRows(launch, library, plan)) ||
      failed(planSums(launch, library, plan)))
    return failure();
  return plan;
}

void addLaunchEmitters(KernelEmitters &emitters) { emitters.add<planLaunch>(); }

} // namespace rota::lowering
