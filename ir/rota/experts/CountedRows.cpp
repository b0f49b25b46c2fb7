// SPDX-License-Identifier: Apache-2.0
//
// Rows that ops make and read, by counts, and checks of those counts.
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/Checks.h"
#include "runtime/text/Text.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::rota;

using Rows = std::optional<CountedRows>;

double RaggedAllToAllOp::getExpectedFill() { return fillOf(getFill()); }

/// Counts as they were made, before `insert-reshards` divided them for a use.
static Value wholeCounts(Value counts) {
  auto reshard = counts.getDefiningOp<ReshardOp>();
  return reshard ? reshard.getValue() : counts;
}

template <typename Op> static Rows rowsOf(Op op) {
  if (!op.getCounts())
    return std::nullopt;
  return CountedRows{wholeCounts(op.getCounts()), int64_t(op.getBlocks()),
                     fillOf(op.getFill())};
}

/// The counted rows of a result whose other rows are zero.
static Rows madeRows(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Rows>(op)
      .Case<DispatchOp, GroupedProductOp>([](auto op) { return rowsOf(op); })
      .Default(Rows());
}

/// The counted rows of an operand whose other rows are not read.
static Rows readRows(OpOperand &use) {
  unsigned number = use.getOperandNumber();
  return llvm::TypeSwitch<Operation *, Rows>(use.getOwner())
      .Case<CombineOp, GroupedProductOp>(
          [&](auto op) { return number == 0 ? rowsOf(op) : Rows(); })
      .Case([&](ChoiceDotOp op) { return number == 1 ? rowsOf(op) : Rows(); })
      .Case([&](GroupedProductGradOp op) {
        return number <= 1 ? rowsOf(op) : Rows();
      })
      .Case([&](GroupedBiasGradOp op) {
        if (number > 0)
          return Rows();
        return Rows(
            {wholeCounts(op.getCounts()), int64_t(op.getBlocks()), 1.0});
      })
      .Default(Rows());
}

bool mlir::rota::isCount(Value value) {
  auto sums = value.getDefiningOp<GroupedBiasGradOp>();
  return sums && matchPattern(sums.getCotangent(), m_OneFloat());
}

Rows mlir::rota::countedRows(Value value, ArrayRef<OpOperand *> uses) {
  Rows made = madeRows(value), result = made;
  for (OpOperand *use : uses) {
    Rows read = readRows(*use);
    bool agrees = read && (!result || (result->counts == read->counts &&
                                       result->blocks == read->blocks));
    if (!agrees && !made)
      return std::nullopt;
    if (!agrees)
      continue;
    if (result)
      read->fill = std::min(read->fill, result->fill);
    result = read;
  }
  return result;
}

LogicalResult mlir::rota::verifyBlocks(Operation *op, int64_t blocks,
                                       int64_t rows, int64_t experts) {
  if (blocks >= 1 && rows % blocks == 0 && experts % blocks == 0)
    return success();
  return op->emitOpError("expected a number of blocks that divides ")
         << rows << " rows and " << experts << " experts, got " << blocks;
}

LogicalResult mlir::rota::verifyFill(Operation *op,
                                     std::optional<APFloat> fill) {
  double part = fillOf(fill); // NaN is no part
  if (part > 0 && part <= 1)
    return success();
  return op->emitOpError("expected a fill above 0 and at most 1, got ")
         << ::rota::numberText(part);
}

LogicalResult mlir::rota::verifyCountedRows(Operation *op, Value rows,
                                            Value counts, int64_t blocks,
                                            std::optional<APFloat> fill) {
  if (failed(checkRank(op, "rows", rows, 3)) ||
      failed(checkRank(op, "counts", counts, 2)))
    return failure();
  int64_t experts = shapeOf(counts)[1];
  if (failed(checkShape(op, "counts", counts, {shapeOf(rows)[0], experts})) ||
      failed(verifyBlocks(op, blocks, shapeOf(rows)[1], experts)))
    return failure();
  return verifyFill(op, fill);
}
