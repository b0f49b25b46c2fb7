// SPDX-License-Identifier: Apache-2.0
//
// The joint function of a forward function and its derivative, from which the
// functions of a differentiated model are cut.
#ifndef ROTA_PASSES_DIFFERENTIATE_JOINT_H
#define ROTA_PASSES_DIFFERENTIATE_JOINT_H

#include "ir/rota/model/Roles.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::rota {

/// A copy of a forward function followed by its reverse walk. Each parameter's
/// gradient is accumulated once, right after the op that makes it.
struct Joint {
  OwningOpRef<func::FuncOp> function; // in no module
  DenseSet<Operation *> forwardOps;   // the copies; all other ops are backward
  /// Values of the forward function's arguments and results, and the cotangents
  /// of the activations.
  RoleValues<Value> values;
  /// The result that is differentiated, and its cotangent.
  Value result, seed;
  /// Terms of the loss, each with its cotangent: the term's coefficient.
  SmallVector<std::pair<Value, Value>> terms;
  SmallVector<AccumulateOp> accumulates;
  DenseSet<StringAttr> frozen; // names of parameters without a gradient
  bool hasFrozenInput = false; // of a layer: see `rota.layer`
  /// From a value of the copy to that of the forward function.
  DenseMap<Value, Value> originals;

  Block &body() { return function->getBody().front(); }

  /// Builds the joint function of `forward`. The cotangent of an output
  /// activation is one more argument, that of the loss's sum is 1, that of a
  /// term its coefficient, that of any other result is zero. Emits an error and
  /// fails when `forward` is not straight-line code or an op on the way has no
  /// derivative.
  static FailureOr<Joint> build(func::FuncOp forward);
};

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_JOINT_H
