// SPDX-License-Identifier: Apache-2.0
//
// Rows of experts of which only those that choices have matter.
#ifndef ROTA_IR_ROTA_EXPERTS_COUNTEDROWS_H
#define ROTA_IR_ROTA_EXPERTS_COUNTEDROWS_H

#include "ir/rota/experts/Experts.h"

namespace mlir::rota {

/// The rows of a value [B, R, E]: in each block of a sequence only the first
/// matter, as many as `counts` [B, X] say of the block's experts. The others
/// are zero, or no op reads them, so that zeros may stand there.
struct CountedRows {
  Value counts;
  int64_t blocks = 1; // number of blocks that R and X are divided into
  double fill = 1.0;  // the part of R that is expected to matter
};

/// The part that an op's `fill` says: all where it says nothing.
inline double fillOf(std::optional<APFloat> fill) {
  return fill ? fill->convertToDouble() : 1.0;
}

/// True for a sum of counts: `rota.grouped_bias_grad` of ones. A sum of whole
/// numbers over ranks has the same bits in any order.
bool isCount(Value value);

/// The counted rows of `value`, by the op that makes it, or else by its readers
/// `uses`, if they agree. None where other rows matter, too.
std::optional<CountedRows> countedRows(Value value, ArrayRef<OpOperand *> uses);

/// Checks that the blocks divide both, with an error at `op`.
LogicalResult verifyBlocks(Operation *op, int64_t blocks, int64_t rows,
                           int64_t experts);
/// Checks that a fill, where there is one, is above 0 and at most 1.
LogicalResult verifyFill(Operation *op, std::optional<APFloat> fill);
/// Checks rows [B, R, E], counts [B, X] of their blocks, and the fill.
LogicalResult verifyCountedRows(Operation *op, Value rows, Value counts,
                                int64_t blocks, std::optional<APFloat> fill);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_EXPERTS_COUNTEDROWS_H
