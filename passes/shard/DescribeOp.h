// SPDX-License-Identifier: Apache-2.0
//
// Ops in messages and remarks.
#ifndef ROTA_PASSES_SHARD_DESCRIBEOP_H
#define ROTA_PASSES_SHARD_DESCRIBEOP_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// "'rota.einsum' with 'weight'": an op and the parameter that it uses.
inline std::string describe(Operation *op) {
  std::string text = ("'" + op->getName().getStringRef() + "'").str();
  for (Value operand : op->getOperands())
    if (auto read = operand.getDefiningOp<ReadOp>())
      return text + " with '" + read.getParam().str() + "'";
  return text;
}

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_DESCRIBEOP_H
