// SPDX-License-Identifier: Apache-2.0
//
// Vector code of one row: passes, segments of columns, values.
#include "lowering/kernels/rows/RowKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using mlir::rota::ReduceOp;

namespace rota::lowering {

void RowKernel::begin(ImplicitLocOpBuilder &b, ValueRange operands,
                      ArrayRef<bool> flags) {
  accumulate.assign(flags.begin(), flags.end());
  values.begin(b, operands);
  keptRows.clear();
  for (const KeptValue &each : kept)
    keptRows.push_back(
        stackArray(b, RowBody::elementOf(each.value), body.getColumns()));
}

void RowKernel::emitRow(ImplicitLocOpBuilder &b, Value row,
                        ValueRange results) {
  values.beginRow();
  for (int pass = 0; pass < body.getPasses(); ++pass)
    emitPass(b, pass, row, results);
  emitResults(b, /*rank=*/0, {row, {}, 0, 0, nullptr}, results);
}

void RowKernel::emitPass(ImplicitLocOpBuilder &b, int pass, Value row,
                         ValueRange results) {
  SmallVector<ReduceOp> reductions = body.getReductions(pass);
  llvm::DenseSet<Value> seen;
  for (Value root : body.getColumnRoots(pass))
    values.emitScalarsOf(b, root, row, seen);

  SmallVector<Value> totals(reductions.size());
  for (const Segment &segment : segments(body.getColumns()))
    emitSegment(b, segment, reductions, pass, row, results, totals);
  for (auto [reduce, total] : llvm::zip(reductions, totals))
    values.setTotal(b, reduce, total);
}

void RowKernel::emitSegment(ImplicitLocOpBuilder &b, const Segment &segment,
                            ArrayRef<ReduceOp> reductions, int pass, Value row,
                            ValueRange results, MutableArrayRef<Value> totals) {
  auto emitColumns = [&](Value column, ValueRange carried) {
    RowValues::Values atColumns = loadKept(b, pass, column, segment.width);
    Place place{row, column, segment.width, 0, &atColumns};
    SmallVector<Value> next;
    for (auto [index, op] : llvm::enumerate(reductions)) {
      ReduceOp reduce = op;
      Value part = values.wide(b, reduce.getInput(), place);
      next.push_back(carried.empty()
                         ? part
                         : combineParts(b, reduce, carried[index], part));
    }
    storeKept(b, pass, place);
    if (pass == body.getPasses() - 1)
      emitResults(b, /*rank=*/1, place, results);
    return next;
  };

  SmallVector<Value> vectors;
  if (segment.count == 1) {
    vectors = emitColumns(constant(b, segment.begin), {});
  } else {
    for (ReduceOp reduce : reductions)
      vectors.push_back(constant(b, neutralOf(reduce), segment.width));
    Value end = constant(b, segment.begin + segment.count * segment.width);
    vectors = emitLoop(b, constant(b, segment.begin), end,
                       constant(b, segment.width), vectors, emitColumns);
  }
  for (auto [op, vector, total] : llvm::zip(reductions, vectors, totals)) {
    ReduceOp reduce = op;
    Value part = combine(b, vector, [&](Value low, Value high) {
      return combineParts(b, reduce, low, high);
    });
    total = total ? combineParts(b, op, total, part) : part;
  }
}

RowValues::Values RowKernel::loadKept(ImplicitLocOpBuilder &b, int pass,
                                      Value column, int64_t width) {
  RowValues::Values loaded;
  for (auto [each, row] : llvm::zip_equal(kept, keptRows)) {
    if (each.pass >= pass)
      continue;
    Type element = RowBody::elementOf(each.value);
    Value value = load(b, row, element, column, width);
    loaded[each.value] = element.isBF16() ? RowValues::Emitted{{}, value}
                                          : RowValues::Emitted{value, {}};
  }
  return loaded;
}

void RowKernel::storeKept(ImplicitLocOpBuilder &b, int pass,
                          const Place &place) {
  for (auto [each, row] : llvm::zip_equal(kept, keptRows))
    if (each.pass == pass)
      store(b, values.stored(b, each.value, place), row, place.column);
}

void RowKernel::emitResults(ImplicitLocOpBuilder &b, int64_t rank,
                            const Place &place, ValueRange results) {
  // Everything is computed before anything is stored: results may lie on
  // operands.
  struct Store {
    Value value, pointer, index;
  };
  SmallVector<Store> stores;
  for (auto [number, value] : llvm::enumerate(body.getResults())) {
    if (RowBody::rankOf(value) != rank)
      continue;
    bool sum = body.isSum(number);
    Value row = sum ? constant(b, int64_t(0)) : place.row;
    Value index = values.indexOf(b, value, row, place);
    Type element = sum ? b.getF32Type() : RowBody::elementOf(value);
    Value stored;
    if (sum || accumulate[number]) {
      stored = values.wide(b, value, place);
      Value old = loadWide(b, results[number], element, index, place.width);
      stored = arith::AddFOp::create(b, old, stored);
      if (element.isBF16())
        stored = arith::TruncFOp::create(
            b,
            place.width ? Type(VectorType::get({place.width}, element))
                        : element,
            stored);
    } else {
      stored = values.stored(b, value, place);
    }
    stores.push_back({stored, results[number], index});
  }
  for (const Store &item : stores)
    store(b, item.value, item.pointer, item.index);
}

} // namespace rota::lowering
