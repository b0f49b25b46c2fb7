// SPDX-License-Identifier: Apache-2.0
//
// The ops of a mixture of experts (ExpertOps.td), in a header of their own:
// most of the compiler knows ops by their interfaces.
#ifndef ROTA_IR_ROTA_EXPERTS_EXPERTS_H
#define ROTA_IR_ROTA_EXPERTS_EXPERTS_H

#include "ir/rota/Rota.h"
#include "ir/rota/sharding/DividedByCost.h"

namespace mlir::rota {

/// The resource that `rota.observe` reads and writes.
struct Observations : SideEffects::Resource::Base<Observations> {
  StringRef getName() final { return "observations"; }
};

} // namespace mlir::rota

#define GET_OP_CLASSES
#include "ir/rota/ExpertOps.h.inc"

#endif // ROTA_IR_ROTA_EXPERTS_EXPERTS_H
