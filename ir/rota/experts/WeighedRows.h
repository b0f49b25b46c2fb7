// SPDX-License-Identifier: Apache-2.0
//
// Rows times a number each: the cotangents of rows that a weighted sum of
// choices combines. A product of weighed rows is the weighed product of the
// rows, so that it can be taken before the weights, which need its result.
#ifndef ROTA_IR_ROTA_EXPERTS_WEIGHEDROWS_H
#define ROTA_IR_ROTA_EXPERTS_WEIGHEDROWS_H

#include "ir/rota/experts/Experts.h"

namespace mlir::rota {

struct WeighedRows {
  Value rows;    // [Q, R, E]
  Value weights; // [Q, R], one of each row

  /// `value` as rows times weights; none where it is nothing of the kind.
  static std::optional<WeighedRows> match(Value value);

  /// The product, rounded once to `element`.
  Value build(OpBuilder &builder, Location loc, Type element) const;
};

/// What makes rows: a product with the experts' weights, and the bias that is
/// added to it, if any.
struct MadeRows {
  GroupedProductOp product;
  Value bias; // [X, F] or null

  static std::optional<MadeRows> find(Value rows);

  /// The dot product of each of the rows and its `cotangent` [Q, R, F], of type
  /// [Q, R, 1]. The cotangent goes back through the product, where it meets the
  /// operand; no use of the rows is left.
  Value dots(OpBuilder &builder, Location loc, Value cotangent, Type element);
};

/// The cotangent of the operand of `product` for that of its result. One that
/// is there already is taken again.
Value backThrough(GroupedProductOp product, OpBuilder &builder,
                  Value cotangent);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_EXPERTS_WEIGHEDROWS_H
