// SPDX-License-Identifier: Apache-2.0
//
// For the files of op families. Such a file answers all that the compiler asks
// of its ops:
// - verifiers, whose labels C1..Cn are those of the ops' descriptions;
// - derivatives, with dy for the cotangent of a result y and dx for that of an
//   operand x: one of a composite op is a composite op (`rms_norm_grad`, ...),
//   so that decomposition and kernels see one op;
// - factor rules, in which a factor is indivisible where a part of it does not
//   compute a part of the result by the same op, and parts on one rank;
// - bounds of numbers that index;
// - decompositions (composite/Arithmetic.h);
// - costs: operations of the formulas in the ops' descriptions, an exponential
//   or a root as one; bytes of all operands and results, as if nothing were
//   fused; none for ops that become no code;
// - forms in a task, whether results can be added to what a buffer holds, and
//   the operands whose bytes results can take.
#ifndef ROTA_IR_ROTA_OPFAMILY_H
#define ROTA_IR_ROTA_OPFAMILY_H

#include "ir/rota/Checks.h"
#include "ir/rota/Rules.h"
#include "ir/rota/sharding/RuleBuilder.h"
#include "ir/rota/sharding/Sharding.h"

namespace mlir::rota {

/// One for each operand; null: none.
using Cotangents = SmallVector<Value>;
using Dimensions = FactorRule::Dimensions;
/// The mesh axes that divide a factor.
using Axes = SmallVector<AxisRefAttr, 2>;
using Parts = FailureOr<SmallVector<Value>>;
/// Operands and results that may have the same bytes.
using InPlacePairs = SmallVector<std::pair<unsigned, unsigned>>;

inline double elementsOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? double(tensor.getNumElements()) : 1.0;
}

inline double bytesOf(Value value) {
  unsigned bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  return elementsOf(value) * double(llvm::divideCeil(bits, 8));
}

inline int64_t lastDimension(Value value) { return shapeOf(value).back(); }

inline ArrayAttr axesAttr(OpBuilder &builder, ArrayRef<AxisRefAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

/// The number of the first of the `entries` that this rank has of a dimension
/// divided over `axes`; null where it has all.
inline Value firstEntry(Location loc, OpBuilder &builder,
                        ArrayRef<AxisRefAttr> axes, int64_t entries) {
  if (axes.empty())
    return {};
  return ShardOffsetOp::create(builder, loc,
                               RankedTensorType::get({}, builder.getI32Type()),
                               axesAttr(builder, axes), entries);
}

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_OPFAMILY_H
