// SPDX-License-Identifier: Apache-2.0
//
// The joint function of a forward function and its derivative, from which the
// functions of a differentiated model are cut.
#ifndef ROTA_PASSES_DIFFERENTIATE_JOINT_H
#define ROTA_PASSES_DIFFERENTIATE_JOINT_H

#include "ir/rota/Rota.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::rota {

/// Where the cotangent of a function's first result comes from.
enum class CotangentSeed {
  Argument, // one more argument, behind the function's own
  One       // the constant 1
};

/// A copy of a forward function followed by its reverse walk. Each parameter's
/// gradient is accumulated once, right behind the op that makes it.
struct Joint {
  OwningOpRef<func::FuncOp> function; // in no module
  DenseSet<Operation *> forwardOps;   // the copies; all other ops are backward
  Value cotangent;                    // the seed
  /// Of argument 0; null when that is not of floating-point type.
  Value inputCotangent;
  SmallVector<AccumulateOp> accumulates;
  /// From a value of the copy to that of the forward function.
  DenseMap<Value, Value> originals;

  Block &body() { return function->getBody().front(); }
  ValueRange outputs() { return body().getTerminator()->getOperands(); }

  /// Builds the joint function of `forward`, in which the cotangents of results
  /// but the first are zero. Emits an error and fails when `forward` is not
  /// straight-line code or an op on the way has no derivative.
  static FailureOr<Joint> build(func::FuncOp forward, CotangentSeed seed);
};

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_JOINT_H
