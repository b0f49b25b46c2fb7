// SPDX-License-Identifier: Apache-2.0
//
// One rank's part of an op: its types, its ops and its cost.
#ifndef ROTA_PASSES_SHARD_PARTOFOP_H
#define ROTA_PASSES_SHARD_PARTOFOP_H

#include "passes/shard/propagation/FactorAxes.h"

namespace mlir::rota {

/// The types of one rank's parts of `values`, operands or results of an op with
/// these dimensions in its rule, under these axes of its factors.
SmallVector<Type> partTypes(ValueRange values,
                            ArrayRef<FactorRule::Dimensions> dimensions,
                            const FactorAxes &factors, MeshAttr mesh);

/// Makes one rank's part of `op`, whose operands are parts, at the builder's
/// insertion point. `sizes` has the whole sizes of the factors, `results` the
/// types of the results' parts. Returns the values that replace the op's
/// results; none where `op` itself, which then has these types, is the part.
FailureOr<SmallVector<Value>> buildPartOf(OpBuilder &builder, Operation *op,
                                          const FactorAxes &factors,
                                          ArrayRef<int64_t> sizes,
                                          ArrayRef<Type> results);

/// The cost of one rank's part of `op`, whose types are whole, under these axes
/// of its factors. None where there is no such part.
std::optional<Cost> costOfPart(Operation *op, const FactorRule &rule,
                               const FactorAxes &factors, MeshAttr mesh);

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PARTOFOP_H
