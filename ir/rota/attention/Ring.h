// SPDX-License-Identifier: Apache-2.0
//
// The ring of ranks among which the sequence of an attention is divided, and
// the ops that its parts are made of.
#ifndef ROTA_IR_ROTA_ATTENTION_RING_H
#define ROTA_IR_ROTA_ATTENTION_RING_H

#include "ir/rota/sharding/Sharding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::rota {

class Ring {
public:
  // Reasons of transfers.
  static constexpr StringLiteral kKeys = "keys travel around the ring";
  static constexpr StringLiteral kValues = "values travel around the ring";
  static constexpr StringLiteral kHome = "cotangents travel to their block";

  /// `query` is an operand of `op`, whose factors are divided by the axes of
  /// `factors`.
  Ring(FactorRuleOpInterface op, Value query, OpBuilder &builder,
       ArrayRef<SmallVector<AxisRefAttr, 2>> factors)
      : loc(op.getLoc()), builder(builder) {
    OperandRange operands = op->getOperands();
    auto index = llvm::find(operands, query) - operands.begin();
    int64_t sequence = op.getFactorRule().operands[index][1].front();
    axes.assign(factors[sequence].begin(), factors[sequence].end());
    ranks = meshOf(op).getSize(factors[sequence]);
  }

  bool isDivided() const { return !axes.empty(); }
  int64_t size() const { return ranks; }

  /// The value of the rank `by` positions before. Started before the next op.
  Value shift(Value value, int64_t by, StringRef reason) {
    return permute(value, by, /*mirrored=*/false, reason);
  }
  /// To the rank `by` positions before.
  Value shiftBack(Value value, int64_t by, StringRef reason) {
    return shift(value, ranks - by, reason);
  }
  /// The value of the rank that is as far from the end as this one is from the
  /// start.
  Value mirror(Value value, StringRef reason) {
    return permute(value, 0, /*mirrored=*/true, reason);
  }

  /// `factor` times the position of the rank `before` positions before this
  /// one, plus `start`.
  Value position(int64_t before = 0, int64_t factor = 1, int64_t start = 0) {
    auto type = RankedTensorType::get({}, builder.getI32Type());
    return ShardOffsetOp::create(builder, loc, type, builder.getArrayAttr(axes),
                                 factor, (ranks - before) % ranks, start);
  }

  /// The value in f32 where it is bf16.
  Value widen(Value value) {
    RankedTensorType type = wideType(value.getType());
    if (value.getType() == type)
      return value;
    return arith::ExtFOp::create(builder, loc, type, value);
  }
  Value narrow(Value value, Type type) {
    if (value.getType() == type)
      return value;
    return arith::TruncFOp::create(builder, loc, type, value);
  }
  /// The sum, or the value where there is nothing to add it to.
  Value add(Value sum, Value value) {
    return sum ? Value(arith::AddFOp::create(builder, loc, sum, value)) : value;
  }

  static RankedTensorType wideType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getElementType().isBF16()
               ? tensor.clone(Float32Type::get(type.getContext()))
               : tensor;
  }

private:
  Value permute(Value value, int64_t by, bool mirrored, StringRef reason) {
    ArrayAttr group = builder.getArrayAttr(axes);
    return PermuteOp::create(builder, loc, value.getType(), value, group, group,
                             reason, by, mirrored);
  }

  Location loc;
  OpBuilder &builder;
  SmallVector<Attribute> axes;
  int64_t ranks = 1;
};

/// The parts of attention, or of its derivative, in balanced order: results of
/// these types.
FailureOr<SmallVector<Value>> buildBalancedPart(AttentionOp op, Ring &ring,
                                                OpBuilder &builder,
                                                TypeRange types);
FailureOr<SmallVector<Value>> buildBalancedPart(AttentionGradOp op, Ring &ring,
                                                OpBuilder &builder,
                                                TypeRange types);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ATTENTION_RING_H
