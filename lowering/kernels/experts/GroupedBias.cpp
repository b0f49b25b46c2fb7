// SPDX-License-Identifier: Apache-2.0
//
// Biases of experts, on every device. A first kernel writes the expert of each
// row, sequence by sequence; then each row is one kernel row. The derivative
// has an expert for each kernel row, which takes the expert's rows in ascending
// order.
#include "ir/rota/experts/Experts.h"
#include "lowering/kernels/experts/Groups.h"

using namespace mlir;

namespace rota::lowering {

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

GroupShape::GroupShape(Value values, Value counts, int64_t blocks)
    : batch(tensorOf(values).getDimSize(0)),
      rows(tensorOf(values).getDimSize(1)),
      width(tensorOf(values).getDimSize(2)),
      experts(tensorOf(counts).getDimSize(1)), blocks(blocks),
      element(tensorOf(values).getElementType()) {}

std::string GroupShape::key() const {
  std::string key;
  llvm::raw_string_ostream(key)
      << batch << 'x' << rows << 'x' << width << 'x' << element << " of "
      << experts << '/' << blocks;
  return key;
}

GroupRows rowsOfExpert(RowBuilder &k, const GroupShape &shape, Memory counts,
                       Value expert) {
  Value block = k.div(expert, shape.expertsOfBlock());
  Value start = k.mul(block, shape.rowsOfBlock());
  Value first = k.loop(k.mul(block, shape.expertsOfBlock()), expert, 1, {start},
                       [&](Value x, ValueRange row) -> SmallVector<Value> {
                         return {k.add(row[0], k.loadIndex(counts, x))};
                       })[0];
  Value whole = k.add(first, k.loadIndex(counts, expert));
  Value last = k.add(start, shape.rowsOfBlock());
  return {k.min(first, last), k.min(whole, last), whole};
}

namespace {

/// Arguments: counts, the expert of each row or -1.
void emitExperts(RowBuilder &k, const GroupShape &shape, Value sequence) {
  Memory counts = k.argument(0, k.ops().getI32Type());
  Memory experts = k.argument(1, k.ops().getI32Type());
  Memory own = k.offset(experts, k.mul(sequence, shape.rows));
  Memory of = k.offset(counts, k.mul(sequence, shape.experts));
  k.each(shape.rows, [&](Value row) { k.storeIndex(k.i64(-1), own, row); });
  k.sync();
  k.each(shape.experts, [&](Value expert) {
    GroupRows rows = rowsOfExpert(k, shape, of, expert);
    k.loop(rows.first, rows.end, 1,
           [&](Value row) { k.storeIndex(expert, own, row); });
  });
}

/// Arguments: the expert of each row, rows, bias, result, which may be the
/// rows.
void emitAdd(RowBuilder &k, const GroupShape &shape, Type ofBias, Value row) {
  Memory experts = k.argument(0, k.ops().getI32Type());
  Memory rows = k.argument(1, shape.element), bias = k.argument(2, ofBias),
         result = k.argument(3, shape.element);
  Value expert = k.loadIndex(experts, row);
  Value hasExpert = k.isWithin(expert, shape.experts);
  Memory from = k.offset(rows, k.mul(row, shape.width));
  Memory to = k.offset(result, k.mul(row, shape.width));
  Memory own =
      k.offset(bias, k.mul(k.select(hasExpert, expert, k.i64(0)), shape.width));
  k.overColumns(shape.width, [&](Value at, ArrayRef<int64_t> counts) {
    for (int64_t count : counts) {
      Value value = k.loadVector(from, at, count);
      Value sum = k.addf(value, k.loadVector(own, at, count));
      k.storeVector(k.select(hasExpert, sum, value), to, at, count);
      at = k.add(at, k.lanes());
    }
  });
}

/// Arguments: cotangent, counts, result.
void emitSums(RowBuilder &k, const GroupShape &shape, bool accumulate,
              Value expert) {
  Memory cotangent = k.argument(0, shape.element);
  Memory counts = k.argument(1, k.ops().getI32Type());
  Memory result = k.argument(2, k.ops().getF32Type());
  Memory to = k.offset(result, k.mul(expert, shape.width));
  k.overColumns(shape.width, [&](Value at, ArrayRef<int64_t> lanes) {
    SmallVector<Value> sums;
    for (auto [i, count] : llvm::enumerate(lanes))
      sums.push_back(accumulate
                         ? k.loadVector(to, k.add(at, i * k.lanes()), count)
                         : k.splat(0.0f));
    sums = k.loop(
        k.i64(0), k.i64(shape.batch), 1, sums,
        [&](Value sequence, ValueRange sums) {
          Memory of = k.offset(counts, k.mul(sequence, shape.experts));
          GroupRows rows = rowsOfExpert(k, shape, of, expert);
          Memory own =
              k.offset(cotangent, k.mul(sequence, shape.rows * shape.width));
          auto add = [&](Value row, ValueRange sums) {
            Value from = k.add(k.mul(row, shape.width), at);
            SmallVector<Value> next;
            for (auto [sum, count] : llvm::zip(sums, lanes)) {
              next.push_back(k.addf(sum, k.loadVector(own, from, count)));
              from = k.add(from, k.lanes());
            }
            return next;
          };
          return k.loop(rows.first, rows.end, 1, sums, add);
        });
    for (auto [i, sum] : llvm::enumerate(sums))
      k.storeVector(sum, to, k.add(at, i * k.lanes()), lanes[i]);
  });
}

} // namespace

using Kind = KernelArgument::Kind;

static FailureOr<KernelPlan> planGroupedBias(mlir::rota::GroupedBiasOp op,
                                             KernelLibrary &library) {
  GroupShape shape(op.getRows(), op.getCounts(), op.getBlocks());
  Type ofBias = op.getBias().getType().getElementType();
  std::string key;
  llvm::raw_string_ostream(key) << shape.key() << " and " << ofBias;
  int64_t rows = shape.batch * shape.rows;
  FailureOr<std::string> experts = emitRowCode(
      library, op->getLoc(), "experts_of_rows", shape.key(), 2,
      {shape.batch, shape.rows, 32},
      [&](RowBuilder &k, Value sequence) { emitExperts(k, shape, sequence); });
  FailureOr<std::string> add = emitRowCode(
      library, op->getLoc(), "grouped_bias", key, 4, shape.space(rows, ofBias),
      [&](RowBuilder &k, Value row) { emitAdd(k, shape, ofBias, row); });
  if (failed(experts) || failed(add))
    return failure();
  KernelPlan plan;
  plan.temporaries = {shape.batch * shape.rows * 4};
  plan.calls = {
      {*experts, shape.batch, 1, {{Kind::Operand, 2}, {Kind::Temporary, 0}}},
      {*add,
       rows,
       1,
       {{Kind::Temporary, 0},
        {Kind::Operand, 0},
        {Kind::Operand, 1},
        {Kind::Result, 0}}}};
  return plan;
}

static FailureOr<KernelPlan>
planGroupedBiasGrad(mlir::rota::GroupedBiasGradOp op,
                    ArrayRef<bool> accumulated, KernelLibrary &library) {
  GroupShape shape(op.getCotangent(), op.getCounts(), op.getBlocks());
  bool accumulate = accumulated.front();
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "grouped_bias_grad",
      shape.key() + (accumulate ? " added" : ""), 3,
      shape.space(shape.experts, op.getResult().getType().getElementType()),
      [&](RowBuilder &k, Value expert) {
        emitSums(k, shape, accumulate, expert);
      });
  return planCall(symbol, shape.experts, 1, /*operands=*/2);
}

void addGroupedBiasEmitters(KernelEmitters &emitters) {
  emitters.add<planGroupedBias>();
  emitters.add<planGroupedBiasGrad>();
}

} // namespace rota::lowering
