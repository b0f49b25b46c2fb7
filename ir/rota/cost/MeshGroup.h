// SPDX-License-Identifier: Apache-2.0
//
// Ranks that exchange something, by their numbers.
#ifndef ROTA_IR_ROTA_COST_MESHGROUP_H
#define ROTA_IR_ROTA_COST_MESHGROUP_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// A group of ranks: all sums of one multiple of each part's stride, of as many
/// as the part has ranks.
struct MeshGroup {
  struct Part {
    int64_t ranks = 1;  // that follow each other
    int64_t stride = 1; // between their numbers
  };
  SmallVector<Part, 2> parts;

  int64_t ranks() const;
  /// The numbers from the group's first rank to its last one, both included.
  int64_t span() const;
  /// The ranks of the group among `devices` that are numbered one after
  /// another from a multiple of `devices`.
  int64_t ranksWithin(int64_t devices) const;
};

/// The ranks along `axes` of the mesh. The last axis is numbered fastest.
MeshGroup groupOf(ArrayRef<AxisRefAttr> axes, MeshAttr mesh);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_MESHGROUP_H
