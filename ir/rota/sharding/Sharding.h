// SPDX-License-Identifier: Apache-2.0
//
// Queries on meshes and shardings that several passes share.
#ifndef ROTA_IR_ROTA_SHARDING_SHARDING_H
#define ROTA_IR_ROTA_SHARDING_SHARDING_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// The op that declares the mesh of the module around `op`; null without one.
MeshOp meshOpOf(Operation *op);

/// The mesh of the module around `op`; all axes of size 1 when it has none.
MeshAttr meshOf(Operation *op);

/// Axes in messages and remarks: "data+tensor:(2)2".
std::string axesText(llvm::ArrayRef<AxisRefAttr> axes);

/// Checks that the module's mesh, if it has one, has the parts of axes that
/// `axes` names; emits an error on `op` otherwise.
LogicalResult verifyAxes(Operation *op, llvm::ArrayRef<AxisRefAttr> axes);
/// Checks the axes of a sharding of a tensor of rank `rank`, and that it has as
/// many entries.
LogicalResult verifySharding(Operation *op, ShardingAttr sharding,
                             int64_t rank);

/// The sharding that divides nothing, with closed dimensions.
ShardingAttr replicatedSharding(MLIRContext *context, int64_t rank);

/// The axes of all dimensions, in order.
llvm::SmallVector<AxisRefAttr> dividingAxes(ShardingAttr sharding);

/// `axes` in the fewest parts: a part is merged with the next part of the same
/// axis if that follows it, a part that is all of an axis is the whole axis,
/// and axes of size 1 are left out.
llvm::SmallVector<AxisRefAttr> mergedAxes(llvm::ArrayRef<AxisRefAttr> axes,
                                          MeshAttr mesh);

/// True when the two name a common part of one axis of `mesh`.
bool overlap(AxisRefAttr a, AxisRefAttr b, MeshAttr mesh);

/// The shape of one rank's part (the largest where they differ): each dimension
/// divided by the ranks along its axes, rounded up.
llvm::SmallVector<int64_t> partShape(llvm::ArrayRef<int64_t> whole,
                                     ShardingAttr sharding, MeshAttr mesh);
RankedTensorType partType(RankedTensorType whole, ShardingAttr sharding,
                          MeshAttr mesh);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_SHARDING_SHARDING_H
