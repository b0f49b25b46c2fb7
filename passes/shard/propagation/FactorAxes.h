// SPDX-License-Identifier: Apache-2.0
//
// Lists of mesh axes, and how the axes of a tensor's dimensions and those of
// the factors of an op's rule follow from each other.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_FACTORAXES_H
#define ROTA_PASSES_SHARD_PROPAGATION_FACTORAXES_H

#include "ir/rota/sharding/Sharding.h"

namespace mlir::rota {

/// Axes that divide one thing (a dimension or a factor), major first.
using AxisList = SmallVector<AxisRefAttr, 2>;
/// The axes of each factor of a rule.
using FactorAxes = SmallVector<AxisList>;
/// The axes of each dimension of a tensor.
using DimensionAxes = SmallVector<AxisList>;

/// `axes` without those of size 1; neighbouring parts of an axis are one part,
/// and a part that is all of an axis is the axis.
AxisList normalized(ArrayRef<AxisRefAttr> axes, MeshAttr mesh);

/// `axes` as a set, normalized and sorted by axis and part.
AxisList normalizedSet(ArrayRef<AxisRefAttr> axes, MeshAttr mesh);

/// The intersection of two sets, and the axes of `a` that are not in `b`. Parts
/// of an axis that cross (of sizes 2 and 3 of an axis of size 6) are in
/// neither.
AxisList intersection(ArrayRef<AxisRefAttr> a, ArrayRef<AxisRefAttr> b,
                      MeshAttr mesh);
AxisList difference(ArrayRef<AxisRefAttr> a, ArrayRef<AxisRefAttr> b,
                    MeshAttr mesh);

/// True when `longer` begins with the axes of `shorter`; a part of an axis is
/// the beginning of that axis.
bool isPrefix(ArrayRef<AxisRefAttr> shorter, ArrayRef<AxisRefAttr> longer,
              MeshAttr mesh);

/// True when an axis of `axes` overlaps with `ref`.
bool overlapsAny(AxisRefAttr ref, ArrayRef<AxisRefAttr> axes, MeshAttr mesh);

/// The dividing axes of `sharding`, normalized.
DimensionAxes dimensionAxes(ShardingAttr sharding, MeshAttr mesh);

/// A sharding with closed dimensions.
ShardingAttr makeSharding(MLIRContext *context, ArrayRef<AxisList> dimensions,
                          ArrayRef<AxisRefAttr> unreduced, MeshAttr mesh);

/// The rule of `op`, in which a factor is also indivisible when only a
/// rewritten op may be divided there and `op` cannot be rewritten. An op
/// without a rule gets one of indivisible factors.
FactorRule divisionRule(Operation *op);

/// The rule of `op` as its parts have it: every factor of an op that decomposes
/// may be divided, since elementwise ops, reductions and broadcasts may. Other
/// ops have their divisionRule.
FactorRule rowDivisionRule(Operation *op);

/// Adds to `factors` the axes that a tensor with these dimensions gives to the
/// factors of `rule`. A major factor takes the axes that divide it; an axis
/// that is too large is cut into parts; axes that fit neither way are dropped.
FactorAxes projectFactors(const FactorRule &rule,
                          const FactorRule::Dimensions &tensor,
                          ArrayRef<AxisList> dimensions, MeshAttr mesh);

/// The axes of a tensor's dimensions under these axes of its factors.
DimensionAxes composeDimensions(const FactorRule::Dimensions &tensor,
                                const FactorAxes &factors, MeshAttr mesh);

/// Takes axes away until every tensor of the rule has parts that are
/// contiguous: a minor factor of a dimension may be divided only where its
/// major factors are divided to single elements.
void dropStrided(const FactorRule &rule, FactorAxes &factors, MeshAttr mesh);

/// Axes over which result `result` is a sum of the ranks' results under these
/// axes of the factors: those of factors that it does not have.
AxisList summedAxes(const FactorRule &rule, unsigned result,
                    const FactorAxes &factors, MeshAttr mesh);

/// The operations of one rank's part of `op` under these axes of its factors.
double partFlops(Operation *op, const FactorAxes &factors, MeshAttr mesh);

/// The attribute `rota.factors` that `propagate-shardings` writes on an op: the
/// axes of its factors. All lists are empty where there is none.
FactorAxes readFactors(Operation *op, const FactorRule &rule);
void writeFactors(Operation *op, const FactorAxes &factors, MeshAttr mesh);
void eraseFactors(Operation *op);

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_FACTORAXES_H
