// SPDX-License-Identifier: Apache-2.0
//
// Vector code of one row: passes, segments of columns, values.
#include "lowering/kernels/RowKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using mlir::rota::BroadcastOp;
using mlir::rota::ReduceKind;
using mlir::rota::ReduceOp;
using mlir::rota::ResultKind;
using mlir::rota::ResultKindAttr;
using mlir::rota::YieldOp;

namespace rota::lowering {

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t rankOf(Value value) { return tensorOf(value).getRank(); }

static Type elementOf(Value value) { return tensorOf(value).getElementType(); }

static YieldOp yieldOf(mlir::rota::KernelOp kernel) {
  return cast<YieldOp>(kernel.getBody().front().getTerminator());
}

static AffineMap mapOf(mlir::rota::KernelOp kernel, unsigned operand) {
  return cast<AffineMapAttr>(kernel.getOperandMaps()[operand]).getValue();
}

static bool isSum(mlir::rota::KernelOp kernel, unsigned result) {
  return cast<ResultKindAttr>(kernel.getResultKinds()[result]).getValue() ==
         ResultKind::Sum;
}

FailureOr<RowKernel> RowKernel::get(mlir::rota::KernelOp kernel) {
  RowKernel row(kernel);
  if (failed(row.check()))
    return failure();
  row.computeLevels();
  return row;
}

LogicalResult RowKernel::check() {
  auto checkValue = [&](Value value, Operation *at,
                        bool boundary) -> LogicalResult {
    Type element = elementOf(value);
    if (!element.isF32() && !element.isBF16() && !element.isInteger(32) &&
        (boundary || !element.isInteger(1)))
      return at->emitOpError("expected a kernel of f32, bf16 and i32 values, "
                             "got ")
             << value.getType();
    if (rankOf(value) == 0)
      return success();
    int64_t size = tensorOf(value).getNumElements();
    if (columns != 0 && size != columns)
      return at->emitOpError("expected rows of one length, got ")
             << columns << " and " << size;
    columns = size;
    return success();
  };
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments())
    if (failed(checkValue(argument, kernel, true)))
      return failure();
  for (Operation &op : body.without_terminator()) {
    for (Value result : op.getResults())
      if (failed(checkValue(result, &op, false)))
        return failure();
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && !isa<SplatElementsAttr>(constant.getValue()))
      return op.emitOpError("expected a constant with one value for all "
                            "elements, got ")
             << constant.getValue();
  }
  for (Value value : yieldOf(kernel).getValues())
    if (failed(checkValue(value, kernel, true)))
      return failure();
  return success();
}

void RowKernel::computeLevels() {
  passes = 0;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    int level = 0;
    for (Value operand : op.getOperands())
      level = std::max(level, levelOf(operand));
    if (isa<ReduceOp>(op) && rankOf(op.getOperand(0)) == 1)
      passes = std::max(passes, ++level);
    for (Value result : op.getResults())
      levels[result] = level;
  }
  for (Value value : yieldOf(kernel).getValues())
    if (rankOf(value) == 1)
      passes = std::max(passes, levelOf(value) + 1);
}

void RowKernel::begin(ImplicitLocOpBuilder &b, ValueRange pointers,
                      ArrayRef<bool> flags) {
  operands.assign(pointers.begin(), pointers.end());
  accumulate.assign(flags.begin(), flags.end());
  shared.clear();
  Value zero = constant(b, int64_t(0));
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (rankOf(argument) == 0 &&
        mapOf(kernel, argument.getArgNumber()).isConstant())
      shared[argument] = emitArgument(b, argument, {zero, {}, 0, nullptr});
}

void RowKernel::emitRow(ImplicitLocOpBuilder &b, Value row,
                        ValueRange results) {
  scalars = shared;
  for (int pass = 0; pass < passes; ++pass)
    emitPass(b, pass, row, results);
  emitResults(b, /*rank=*/0, {row, {}, 0, &scalars}, results);
}

void RowKernel::emitPass(ImplicitLocOpBuilder &b, int pass, Value row,
                         ValueRange results) {
  SmallVector<ReduceOp> reductions;
  for (auto reduce : kernel.getBody().getOps<ReduceOp>())
    if (rankOf(reduce.getInput()) == 1 && levelOf(reduce.getInput()) == pass)
      reductions.push_back(reduce);
  bool storing = pass == passes - 1;

  llvm::DenseSet<Value> seen;
  for (ReduceOp reduce : reductions)
    emitScalarsOf(b, reduce.getInput(), row, seen);
  if (storing)
    for (Value value : yieldOf(kernel).getValues())
      if (rankOf(value) == 1)
        emitScalarsOf(b, value, row, seen);

  SmallVector<Value> totals(reductions.size());
  for (const Segment &segment : segments(columns))
    emitSegment(b, segment, reductions, storing, row, results, totals);
  for (auto [reduce, total] : llvm::zip(reductions, totals))
    if (elementOf(reduce.getResult()).isBF16())
      scalars[reduce.getResult()].narrow =
          arith::TruncFOp::create(b, b.getBF16Type(), total);
    else
      scalars[reduce.getResult()].wide = total;
}

/// The neutral element of a reduction.
static float neutral(ReduceOp reduce) {
  return reduce.getKind() == ReduceKind::Sum
             ? 0.0f
             : -std::numeric_limits<float>::infinity();
}

static Value combinePair(ImplicitLocOpBuilder &b, ReduceOp reduce, Value left,
                         Value right) {
  if (reduce.getKind() == ReduceKind::Sum)
    return arith::AddFOp::create(b, left, right);
  return arith::MaximumFOp::create(b, left, right);
}

void RowKernel::emitSegment(ImplicitLocOpBuilder &b, const Segment &segment,
                            ArrayRef<ReduceOp> reductions, bool storing,
                            Value row, ValueRange results,
                            MutableArrayRef<Value> totals) {
  auto emitColumns = [&](Value column, ValueRange carried) {
    Values values;
    Place place{row, column, segment.width, &values};
    SmallVector<Value> next;
    for (auto [index, op] : llvm::enumerate(reductions)) {
      ReduceOp reduce = op;
      Value part = wide(b, reduce.getInput(), place);
      next.push_back(carried.empty()
                         ? part
                         : combinePair(b, reduce, carried[index], part));
    }
    if (storing)
      emitResults(b, /*rank=*/1, place, results);
    return next;
  };

  SmallVector<Value> vectors;
  if (segment.count == 1) {
    vectors = emitColumns(constant(b, segment.begin), {});
  } else {
    for (ReduceOp reduce : reductions)
      vectors.push_back(constant(b, neutral(reduce), segment.width));
    Value end = constant(b, segment.begin + segment.count * segment.width);
    vectors = emitLoop(b, constant(b, segment.begin), end,
                       constant(b, segment.width), vectors, emitColumns);
  }
  for (auto [op, vector, total] : llvm::zip(reductions, vectors, totals)) {
    ReduceOp reduce = op;
    Value part = combine(b, vector, [&](Value low, Value high) {
      return combinePair(b, reduce, low, high);
    });
    total = total ? combinePair(b, op, total, part) : part;
  }
}

void RowKernel::emitScalarsOf(ImplicitLocOpBuilder &b, Value value, Value row,
                              llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  if (rankOf(value) == 0) {
    wide(b, value, {row, {}, 0, &scalars});
    return;
  }
  if (Operation *op = value.getDefiningOp())
    for (Value operand : op->getOperands())
      emitScalarsOf(b, operand, row, seen);
}

void RowKernel::emitResults(ImplicitLocOpBuilder &b, int64_t rank,
                            const Place &place, ValueRange results) {
  // Everything is computed before anything is stored: results may lie on
  // operands.
  struct Store {
    Value value, pointer, index;
  };
  SmallVector<Store> stores;
  for (auto [number, value] : llvm::enumerate(yieldOf(kernel).getValues())) {
    if (rankOf(value) != rank)
      continue;
    bool sum = isSum(kernel, number);
    Value base = sum ? constant(b, int64_t(0)) : place.row;
    if (rank == 1) {
      base = arith::MulIOp::create(b, base, constant(b, columns));
      base = arith::AddIOp::create(b, base, place.column);
    }
    Type element = sum ? b.getF32Type() : elementOf(value);
    Value stored;
    if (sum || accumulate[number]) {
      stored = wide(b, value, place);
      Value old = loadWide(b, results[number], element, base, place.width);
      stored = arith::AddFOp::create(b, old, stored);
      if (element.isBF16())
        stored = arith::TruncFOp::create(
            b,
            place.width ? Type(VectorType::get({place.width}, element))
                        : element,
            stored);
    } else {
      stored =
          element.isBF16() ? narrow(b, value, place) : wide(b, value, place);
    }
    stores.push_back({stored, results[number], base});
  }
  for (const Store &item : stores)
    store(b, item.value, item.pointer, item.index);
}

} // namespace rota::lowering
