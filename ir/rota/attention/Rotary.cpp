// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding.
#include "ir/rota/OpFamily.h"

using namespace mlir;
using namespace mlir::rota;

LogicalResult RotaryTableOp::verify() {
  // C1: the result is [positions, frequencies, 2].
  if (failed(checkRank(*this, "a result", getResult(), 3)))
    return failure();
  int64_t count = getFrequencies().size();
  if (failed(checkShape(*this, "a result", getResult(),
                        {shapeOf(getResult())[0], count, 2})))
    return failure();
  // C2: frequencies are finite.
  for (double frequency : getFrequencies())
    if (!std::isfinite(frequency))
      return emitOpError("expected finite frequencies, got ") << frequency;
  return success();
}

LogicalResult RopeOp::verify() {
  // C1: [batch, sequence, heads, D] with even D.
  if (failed(checkRank(*this, "an operand", getInput(), 4)) ||
      failed(checkType(*this, "a result", getResult(), getInput().getType())))
    return failure();
  int64_t head = shapeOf(getInput())[3];
  if (head % 2 != 0)
    return emitOpError("expected an even head size, got ") << head;
  // C2: the table is [positions, D/2, 2] with enough positions.
  if (failed(checkRank(*this, "a table", getTable(), 3)) ||
      failed(checkShape(*this, "a table", getTable(),
                        {shapeOf(getTable())[0], head / 2, 2})))
    return failure();
  if (shapeOf(getTable())[0] < shapeOf(getInput())[1])
    return emitOpError("expected a table of at least ")
           << shapeOf(getInput())[1] << " positions, got "
           << shapeOf(getTable())[0];
  // C3: positions are [batch, sequence].
  return getPositions() ? checkShape(*this, "positions", getPositions(),
                                     shapeOf(getInput()).take_front(2))
                        : success();
}

/// A rotation's transpose is the rotation back; the table's scale stays.
FailureOr<Cotangents> RopeOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                  ArrayRef<bool> needed) {
  if (needed[1])
    return emitOpError("has no derivative in its table");
  Cotangents result(getNumOperands());
  result[0] = RopeOp::create(builder, getLoc(), getType(), cotangents[0],
                             getTable(), getPositions(), !getInverse());
  return result;
}

/// Its elements depend on their position, so it is whole everywhere.
FactorRule RotaryTableOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions table;
  for (int64_t size : shapeOf(getResult()))
    table.push_back({builder.factor(size, /*divisible=*/false)});
  return builder.finish({}, {table});
}

/// Without positions row p of the operand uses row p of the table, so both may
/// be split together when the table has no more rows.
FactorRule RopeOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  ArrayRef<int64_t> shape = shapeOf(getInput()), table = shapeOf(getTable());
  bool isInOrder = !getPositions(),
       together = isInOrder && shape[1] == table[0];
  int64_t batch = builder.factor(shape[0]);
  int64_t sequence = builder.factor(shape[1], together || !isInOrder);
  int64_t heads = builder.factor(shape[2]);
  int64_t head = builder.factor(shape[3], /*divisible=*/false);
  int64_t positions = together ? sequence : builder.factor(table[0], false);
  int64_t pairs = builder.factor(table[1], /*divisible=*/false);
  int64_t parts = builder.factor(table[2], /*divisible=*/false);
  Dimensions operand{{batch}, {sequence}, {heads}, {head}};
  SmallVector<Dimensions> operands{operand, {{positions}, {pairs}, {parts}}};
  if (!isInOrder)
    operands.push_back({{batch}, {sequence}});
  return builder.finish(operands, {operand});
}

/// The table is made once at start.
Cost RotaryTableOp::getCost() { return {}; }

/// Four products and two sums a pair.
Cost RopeOp::getCost() {
  return streamingCost(*this, 3 * elementsOf(getInput()));
}

TaskForm RotaryTableOp::getTaskForm() { return TaskForm::Address; }

/// A position's pairs are read before they are written.
InPlacePairs RopeOp::getInPlacePairs() { return {{0, 0}}; }
