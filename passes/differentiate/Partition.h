// SPDX-License-Identifier: Apache-2.0
//
// Cuts a joint function into functions: the values that cross a cut, and the
// ops that are computed again after it.
#ifndef ROTA_PASSES_DIFFERENTIATE_PARTITION_H
#define ROTA_PASSES_DIFFERENTIATE_PARTITION_H

#include "passes/differentiate/Joint.h"
#include "passes/differentiate/Remat.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::rota {

/// A part of a joint function: the ops that it holds, and the values that it is
/// given beyond the joint function's arguments.
struct JointPart {
  DenseSet<Operation *> ops;
  DenseSet<Value> given;
};

/// True when a part takes `value` from outside. Called for values that are not
/// made again for free.
using IsGiven = function_ref<bool(Value value)>;

/// Whether an op's results are made again wherever they are needed and so never
/// cross a cut: views, widenings, conditions, parameters, tables, constants,
/// and tokens in the rows of experts.
bool isFree(Operation *op);

/// The part that computes `roots` and what `effects` need, from the joint
/// function's arguments and given values.
JointPart collectPart(ArrayRef<Value> roots, ArrayRef<AccumulateOp> effects,
                      IsGiven isGiven);

/// The names that `value` has, itself or seen through views and widenings.
SmallVector<StringRef> namesOf(Value value);

/// The decision of `policy` on the results of `op`, an op of the forward part:
/// of the decisions on their names, the last in RematDecision's order.
RematDecision decisionFor(Operation *op, const RematPolicy &policy);

/// `values` in the order in which `joint` defines them.
SmallVector<Value> inOrder(Joint &joint, const DenseSet<Value> &values);

/// Builds the function `kind` of a part of the model after `after`, another
/// function of that part: `part`'s ops in the joint function's order without
/// names. Arguments stand for `joint.values` of their roles, and those of the
/// results' roles are returned.
func::FuncOp buildFunction(func::FuncOp after, FunctionKind kind, Joint &joint,
                           const JointPart &part);

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_PARTITION_H
