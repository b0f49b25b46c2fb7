// SPDX-License-Identifier: Apache-2.0
//
// The work of attention's mask.
#ifndef ROTA_IR_ROTA_ATTENTION_SEENPAIRS_H
#define ROTA_IR_ROTA_ATTENTION_SEENPAIRS_H

namespace mlir::rota {

/// Pairs of a query and a key that it sees, in one head of a sequence. Of ops
/// with key positions every second sees its keys.
template <typename Op> double seenPairs(Op op) {
  return op.getMask().pairs() * (op.getKeyPosition() ? 0.5 : 1.0);
}

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ATTENTION_SEENPAIRS_H
