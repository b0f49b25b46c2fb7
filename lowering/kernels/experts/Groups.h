// SPDX-License-Identifier: Apache-2.0
//
// Rows that lie one expert after the other, on every device.
#ifndef ROTA_LOWERING_KERNELS_EXPERTS_GROUPS_H
#define ROTA_LOWERING_KERNELS_EXPERTS_GROUPS_H

#include "lowering/kernels/RowBuilder.h"

namespace rota::lowering {

/// Rows [batch, rows, width] in blocks, and experts.
struct GroupShape {
  GroupShape(mlir::Value values, mlir::Value counts, int64_t blocks);

  std::string key() const;
  /// A kernel of `count` rows, each of one row of elements; `other` elements
  /// are read or written with them.
  RowForm space(int64_t count, mlir::Type other) const {
    return {count, width,
            std::min(element.getIntOrFloatBitWidth(),
                     other.getIntOrFloatBitWidth())};
  }
  int64_t rowsOfBlock() const { return rows / blocks; }
  int64_t expertsOfBlock() const { return experts / blocks; }

  int64_t batch, rows, width, experts, blocks;
  mlir::Type element;
};

/// The rows of an expert in a sequence with these counts: `first` to below
/// `end`, both at most the end of the expert's block; `whole` is the end that
/// the counts ask for.
struct GroupRows {
  mlir::Value first, end, whole;
};
GroupRows rowsOfExpert(RowBuilder &k, const GroupShape &shape, Memory counts,
                       mlir::Value expert);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_EXPERTS_GROUPS_H
