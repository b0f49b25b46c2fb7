// SPDX-License-Identifier: Apache-2.0
//
// Values that one function of a model makes and another is given.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_RESIDUALEDGES_H
#define ROTA_PASSES_SHARD_PROPAGATION_RESIDUALEDGES_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// A residual: result `result` of `from` is argument `argument` of `to`.
struct ResidualEdge {
  func::FuncOp from;
  unsigned result;
  func::FuncOp to;
  unsigned argument;
};

/// The residuals among the functions of `table`, a layer or the module, as
/// ir/rota/Model.h says; by `from` in the order in which they are made.
SmallVector<ResidualEdge> residualEdgesIn(Operation *table);

/// Data that both functions are given, by argument.
struct SharedData {
  func::FuncOp first;
  unsigned firstArgument;
  func::FuncOp second;
  unsigned secondArgument;
};
SmallVector<SharedData> sharedDataIn(Operation *table);

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_RESIDUALEDGES_H
