// SPDX-License-Identifier: Apache-2.0
//
// Into how many parts a dimension may be divided.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_PARTLIMIT_H
#define ROTA_PASSES_SHARD_PROPAGATION_PARTLIMIT_H

#include "ir/rota/sharding/Sharding.h"

namespace mlir::rota {

/// Follows values to their uses by the ops' factor rules. Two key-value heads
/// of size 8 in one dimension of 16 make 2 parts, since attention needs whole
/// heads.
class PartLimit {
public:
  /// The largest number of parts of dimension `dim` of `value` for which no
  /// use, direct or not, needs a part of another rank; 1 when every division
  /// needs one.
  int64_t parts(Value value, unsigned dim);

  /// True when parts of that dimension may be uneven, the last padded with
  /// zeros: no use, direct or not, counts them.
  bool mayPad(Value value, unsigned dim);

private:
  bool mayPadUse(OpOperand &use, unsigned dim);
  int64_t partsOfUse(OpOperand &use, unsigned dim);
  llvm::DenseMap<std::pair<Value, unsigned>, int64_t> known;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_PARTLIMIT_H
