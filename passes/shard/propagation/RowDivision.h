// SPDX-License-Identifier: Apache-2.0
//
// Composite ops whose rows are divided.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_ROWDIVISION_H
#define ROTA_PASSES_SHARD_PROPAGATION_ROWDIVISION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::rota {

/// Replaces each op of the function that decomposes by its parts where its
/// tensors are divided along a factor that must stay whole in the op, such as
/// the row of a norm over all heads, and summing up the parts of its reductions
/// over the ranks costs less than gathering its operands and repeating its
/// work. A remark (category `shard`, name `divided-row`) has both costs.
/// Returns the number of ops replaced.
int64_t decomposeDividedRows(func::FuncOp function);

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_ROWDIVISION_H
