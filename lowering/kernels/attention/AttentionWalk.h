// SPDX-License-Identifier: Apache-2.0
//
// The walk of kernels of every device over the pairs of attention's mask. A
// kernel has a block of rows, queries or keys, and walks over tiles of the
// others: those that no row sees are not in the walk; of the rest some are
// partial. Rows are queries and others keys, or with the transposed mask the
// other way round.
#ifndef ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONWALK_H
#define ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONWALK_H

#include "ir/rota/attention/AttentionForm.h"
#include "lowering/kernels/ValueBuilder.h"

namespace rota::lowering {

class AttentionWalk {
public:
  AttentionWalk(ValueBuilder &k, const mlir::rota::AttentionMask &mask)
      : k(k), mask(mask) {}

  /// The first position that the rows from `first` on see, rounded down to a
  /// multiple of `tile`, which divides `first`.
  mlir::Value begin(mlir::Value first, int64_t tile);
  /// The end of the positions that `count` rows from `first` on see, rounded up
  /// to a multiple of `tile` or to the sequence's end.
  mlir::Value end(mlir::Value first, int64_t count, int64_t tile = 1);
  /// Whether a row of a block may not see a position of a tile; null: each sees
  /// all. Positions beyond the sequence do not count.
  mlir::Value isPartial(mlir::Value first, int64_t count, mlir::Value other,
                        int64_t otherCount);
  /// Whether the row sees the position; null: it sees all.
  mlir::Value sees(mlir::Value row, mlir::Value other);

private:
  ValueBuilder &k;
  mlir::rota::AttentionMask mask;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONWALK_H
