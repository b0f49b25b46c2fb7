// SPDX-License-Identifier: Apache-2.0
//
// Biases of experts. A first kernel writes the expert of each row, sequence by
// sequence; then each row is one kernel row. The derivative has an expert for
// each kernel row, which takes the expert's rows in ascending order.
#include "ir/rota/experts/Experts.h"
#include "lowering/kernels/experts/ExpertCode.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Rows [batch, rows, width] in blocks, and experts.
struct GroupShape {
  GroupShape(Value values, Value counts, int64_t blocks)
      : batch(cast<RankedTensorType>(values.getType()).getDimSize(0)),
        rows(cast<RankedTensorType>(values.getType()).getDimSize(1)),
        width(cast<RankedTensorType>(values.getType()).getDimSize(2)),
        experts(cast<RankedTensorType>(counts.getType()).getDimSize(1)),
        blocks(blocks),
        element(cast<RankedTensorType>(values.getType()).getElementType()) {}

  std::string key() const {
    std::string key;
    llvm::raw_string_ostream(key)
        << batch << 'x' << rows << 'x' << width << 'x' << element << " of "
        << experts << '/' << blocks;
    return key;
  }
  int64_t rowsOfBlock() const { return rows / blocks; }
  int64_t expertsOfBlock() const { return experts / blocks; }

  int64_t batch, rows, width, experts, blocks;
  mlir::Type element;
};

/// Arguments: counts, the expert of each row or -1.
void emitExperts(KernelBuilder &k, const GroupShape &shape) {
  Memory counts = k.argument(0, k.ops().getI32Type());
  Memory experts = k.argument(1, k.ops().getI32Type());
  k.loop(k.begin(), k.end(), 1, [&](Value sequence) {
    Memory own = k.offset(experts, k.mul(sequence, shape.rows));
    Memory of = k.offset(counts, k.mul(sequence, shape.experts));
    k.loop(0, shape.rows, 1,
           [&](Value row) { storeIndex(k, k.i64(-1), own, row); });
    k.loop(0, shape.blocks, 1, [&](Value block) {
      Value end = k.mul(k.add(block, 1), shape.rowsOfBlock());
      k.loop(k.i64(0), k.i64(shape.expertsOfBlock()), 1,
             {k.mul(block, shape.rowsOfBlock())},
             [&](Value i, ValueRange first) -> SmallVector<Value> {
               Value expert = k.add(k.mul(block, shape.expertsOfBlock()), i);
               Value next = k.add(first[0], k.loadIndex(of, expert));
               next = k.min(next, end);
               k.loop(first[0], next, 1,
                      [&](Value row) { storeIndex(k, expert, own, row); });
               return {next};
             });
    });
  });
}

/// Arguments: the expert of each row, rows, bias, result, which may be the
/// rows.
void emitAdd(KernelBuilder &k, const GroupShape &shape, Type ofBias) {
  Memory experts = k.argument(0, k.ops().getI32Type());
  Memory rows = k.argument(1, shape.element), bias = k.argument(2, ofBias),
         result = k.argument(3, shape.element);
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Value expert = k.loadIndex(experts, row);
    Value hasExpert = k.isWithin(expert, shape.experts);
    Memory from = k.offset(rows, k.mul(row, shape.width));
    Memory to = k.offset(result, k.mul(row, shape.width));
    Memory own = k.offset(
        bias, k.mul(k.select(hasExpert, expert, k.i64(0)), shape.width));
    overColumns(k, shape.width, [&](Value at, ArrayRef<int64_t> counts) {
      for (int64_t count : counts) {
        Value value = k.loadVector(from, at, count);
        Value sum = k.addf(value, k.loadVector(own, at, count));
        k.storeVector(k.select(hasExpert, sum, value), to, at, count);
        at = k.add(at, k.lanes());
      }
    });
  });
}

/// Arguments: cotangent, counts, result.
void emitSums(KernelBuilder &k, const GroupShape &shape, bool accumulate) {
  Memory cotangent = k.argument(0, shape.element);
  Memory counts = k.argument(1, k.ops().getI32Type());
  Memory result = k.argument(2, k.ops().getF32Type());
  k.loop(k.begin(), k.end(), 1, [&](Value expert) {
    Value block = k.div(expert, shape.expertsOfBlock());
    Value firstExpert = k.mul(block, shape.expertsOfBlock());
    Memory to = k.offset(result, k.mul(expert, shape.width));
    // The rows of the expert in a sequence: [first, end).
    auto rowsOf = [&](Value sequence) {
      Memory of = k.offset(counts, k.mul(sequence, shape.experts));
      Value start = k.mul(block, shape.rowsOfBlock());
      Value first = k.loop(firstExpert, expert, 1, {start},
                           [&](Value x, ValueRange row) -> SmallVector<Value> {
                             return {k.add(row[0], k.loadIndex(of, x))};
                           })[0];
      Value last = k.add(start, shape.rowsOfBlock());
      first = k.min(first, last);
      Value end = k.min(k.add(first, k.loadIndex(of, expert)), last);
      return std::pair(first, end);
    };
    overColumns(k, shape.width, [&](Value at, ArrayRef<int64_t> lanes) {
      SmallVector<Value> sums;
      for (auto [i, count] : llvm::enumerate(lanes))
        sums.push_back(accumulate
                           ? k.loadVector(to, k.add(at, i * k.lanes()), count)
                           : k.splat(0.0f));
      sums = k.loop(
          k.i64(0), k.i64(shape.batch), 1, sums,
          [&](Value sequence, ValueRange sums) {
            auto [first, end] = rowsOf(sequence);
            Memory own =
                k.offset(cotangent, k.mul(sequence, shape.rows * shape.width));
            return k.loop(first, end, 1, sums, [&](Value row, ValueRange sums) {
              Value from = k.add(k.mul(row, shape.width), at);
              SmallVector<Value> next;
              for (auto [sum, count] : llvm::zip(sums, lanes)) {
                next.push_back(k.addf(sum, k.loadVector(own, from, count)));
                from = k.add(from, k.lanes());
              }
              return next;
            });
          });
      for (auto [i, sum] : llvm::enumerate(sums))
        k.storeVector(sum, to, k.add(at, i * k.lanes()), lanes[i]);
    });
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
  FailureOr<std::string> experts =
      emitDedicated(library, "experts_of_rows", shape.key(), 2,
                    [&](KernelBuilder &k) { emitExperts(k, shape); });
  FailureOr<std::string> add =
      emitDedicated(library, "grouped_bias", key, 4,
                    [&](KernelBuilder &k) { emitAdd(k, shape, ofBias); });
  if (failed(experts) || failed(add))
    return failure();
  KernelPlan plan;
  plan.temporaries = {shape.batch * shape.rows * 4};
  plan.calls = {
      {*experts, shape.batch, 1, {{Kind::Operand, 2}, {Kind::Temporary, 0}}},
      {*add,
       shape.batch * shape.rows,
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
  FailureOr<std::string> symbol = emitDedicated(
      library, "grouped_bias_grad", shape.key() + (accumulate ? " added" : ""),
      3, [&](KernelBuilder &k) { emitSums(k, shape, accumulate); });
  return planCall(symbol, shape.experts, 1, /*operands=*/2);
}

void addGroupedBiasEmitters(KernelEmitters &emitters) {
  emitters.add<planGroupedBias>();
  emitters.add<planGroupedBiasGrad>();
}

} // namespace rota::lowering
