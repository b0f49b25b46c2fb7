// SPDX-License-Identifier: Apache-2.0
//
// Parts of sequences that have rows of experts of their own.
#ifndef ROTA_IR_ROTA_EXPERTS_PARTS_H
#define ROTA_IR_ROTA_EXPERTS_PARTS_H

#include "ir/rota/OpFamily.h"

namespace mlir::rota {

/// Checks that sequences of `tokens` have that many equal parts.
inline LogicalResult verifyParts(Operation *op, int64_t parts, int64_t tokens) {
  if (parts >= 1 && tokens % parts == 0)
    return success();
  return op->emitOpError("expected a number of parts that divides ")
         << tokens << " tokens of a sequence, got " << parts;
}

/// Factors of the parts of all sequences, the parts major: ranks that divide
/// the parts to single ones may divide the sequences, too. Of `tokens` [B, S,
/// ...], whose second dimension has the tokens of one part as its factor, the
/// parts become that dimension's major factor. The last factor of the rule;
/// none for one part.
inline SmallVector<int64_t, 1> partFactors(RuleBuilder &builder, int64_t parts,
                                           Dimensions &tokens) {
  SmallVector<int64_t, 1> sequences = tokens[0];
  if (parts == 1)
    return sequences;
  int64_t part = builder.factor(parts);
  tokens[1].insert(tokens[1].begin(), part);
  sequences.insert(sequences.begin(), part);
  return sequences;
}

/// Gives `op`, whose rule partFactors ends, the parts that one rank has, and
/// returns the axes that divide them.
template <typename Op>
ArrayRef<AxisRefAttr> divideParts(Op op, ArrayRef<Axes> factors) {
  if (op.getParts() == 1)
    return {};
  ArrayRef<AxisRefAttr> axes = factors.back();
  op.setParts(op.getParts() / meshOf(op).getSize(axes));
  return axes;
}

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_EXPERTS_PARTS_H
