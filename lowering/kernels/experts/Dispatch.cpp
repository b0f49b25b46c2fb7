// SPDX-License-Identifier: Apache-2.0
//
// Tokens to the rows of their choices, on a CPU: part by part the choice of
// each row is found, then each row is one kernel row.
#include "lowering/kernels/experts/ExpertRows.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// The number of the choice of each row of a part, or -1.
/// Arguments: numbers [parts * batch, rows], then those of Choices.
void emitInverse(RowBuilder &k, const MoveShape &shape, Value part) {
  Memory numbers = k.argument(0, k.ops().getI32Type());
  Choices choices(k, shape, 1);
  Memory own = k.offset(numbers, k.mul(part, shape.rows));
  Value start = shape.firstChoice(k, part);
  k.each(shape.rows, [&](Value row) { k.storeIndex(k.i64(-1), own, row); });
  k.sync();
  k.each(shape.tokens * shape.k, [&](Value i) {
    Value choice = k.add(start, i), row = choices.rowOf(choice);
    k.when(choices.isRow(row), [&] { k.storeIndex(choice, own, row); });
  });
}

/// Arguments: numbers, tokens, rows, then those of Choices.
void emitDispatch(RowBuilder &k, const MoveShape &shape, Value row) {
  Memory numbers = k.argument(0, k.ops().getI32Type());
  Memory tokens = k.argument(1, shape.element);
  Memory rows = k.argument(2, shape.element);
  Choices choices(k, shape, 3);
  Memory to = k.offset(rows, k.mul(row, shape.width));
  Value choice = k.loadIndex(numbers, row);
  auto move = [&] {
    Memory from = k.offset(tokens, k.mul(k.div(choice, shape.k), shape.width));
    if (!shape.weighed)
      return k.copyRow(from, to, shape.width);
    Value weight = k.broadcast(choices.weightOf(choice));
    k.overColumns(shape.width, [&](Value at, ArrayRef<int64_t> counts) {
      for (int64_t count : counts) {
        k.storeVector(k.mulf(weight, k.loadVector(from, at, count)), to, at,
                      count);
        at = k.add(at, k.lanes());
      }
    });
  };
  k.branch(k.isLess(k.i64(-1), choice), move,
           [&] { k.clearRow(to, shape.width); });
}

} // namespace

using Kind = KernelArgument::Kind;

static FailureOr<KernelPlan> planDispatch(mlir::rota::DispatchOp op,
                                          KernelLibrary &library) {
  MoveShape shape(op, op.getWeights());
  int64_t rows = shape.count() * shape.rows;
  FailureOr<std::string> inverse = emitRowCode(
      library, op->getLoc(), "rows_of_choices", shape.key(),
      1 + shape.choiceArguments(), {shape.count(), shape.rows, 32},
      [&](RowBuilder &k, Value part) { emitInverse(k, shape, part); });
  FailureOr<std::string> move = emitRowCode(
      library, op->getLoc(), "dispatch", shape.key(),
      3 + shape.choiceArguments(), shape.space(rows),
      [&](RowBuilder &k, Value row) { emitDispatch(k, shape, row); });
  if (failed(inverse) || failed(move))
    return failure();
  KernelPlan plan;
  plan.temporaries = {shape.count() * shape.rows * 4};
  KernelCall first{*inverse, shape.count(), 1, {{Kind::Temporary, 0}}};
  shape.addChoices(first, 1);
  KernelCall second{
      *move,
      rows,
      1,
      {{Kind::Temporary, 0}, {Kind::Operand, 0}, {Kind::Result, 0}}};
  shape.addChoices(second, 1);
  plan.calls = {first, second};
  return plan;
}

void addDispatchEmitters(KernelEmitters &emitters) {
  emitters.add<planDispatch>();
}

} // namespace rota::lowering
