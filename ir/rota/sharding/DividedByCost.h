// SPDX-License-Identifier: Apache-2.0
//
// A trait of ops that costs divide, not rules.
#ifndef ROTA_IR_ROTA_SHARDING_DIVIDEDBYCOST_H
#define ROTA_IR_ROTA_SHARDING_DIVIDEDBYCOST_H

#include "mlir/IR/OpDefinition.h"

namespace mlir::rota {

/// If several factors of the op want one axis, it goes to the factor for which
/// the fewest bytes move, whatever parameters and borders say of their own
/// dimensions. For ops that move elements from one of their dimensions to
/// another, such as tokens to rows: each side has its own division, and
/// something moves in any case.
template <typename ConcreteOp>
class DividedByCost : public OpTrait::TraitBase<ConcreteOp, DividedByCost> {};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_SHARDING_DIVIDEDBYCOST_H
