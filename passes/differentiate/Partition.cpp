// SPDX-License-Identifier: Apache-2.0
//
// Slices of a joint function, and functions made of them.
#include "passes/differentiate/Partition.h"

#include "ir/rota/experts/Experts.h"

using namespace mlir;
using namespace mlir::rota;

/// Whether the result is the operand's elements, perhaps wider or repeated, so
/// that the operand is never larger.
static bool isViewOrWidening(Operation *op) {
  return isa<NameOp, ReshapeOp, BroadcastOp, arith::ExtFOp>(op);
}

/// Whether the result is tokens in the rows of their choices, which repeats
/// them and adds zeros, without a transfer between ranks along 'expert'. Tokens
/// divide over axes that leave rows whole.
static bool isRowsOfTokens(Operation *op) {
  auto dispatch = dyn_cast<DispatchOp>(op);
  return dispatch && !dispatch.getWeights() && dispatch.getBlocks() == 1;
}

/// Conditions are made again from their operands, since i1 has no memory form.
bool mlir::rota::isFree(Operation *op) {
  return isViewOrWidening(op) || isRowsOfTokens(op) ||
         isa<ReadOp, RotaryTableOp, DocumentPositionsOp, AuxiliaryCotangentOp,
             ObservedMeanOp, arith::ConstantOp, arith::CmpFOp>(op);
}

JointPart mlir::rota::collectPart(ArrayRef<Value> roots,
                                  ArrayRef<AccumulateOp> effects,
                                  IsGiven isGiven) {
  JointPart part;
  SmallVector<Value> pending(roots);
  for (AccumulateOp effect : effects) {
    part.ops.insert(effect);
    pending.push_back(effect.getValue());
  }
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    bool isRemade = op && isFree(op);
    if (!isRemade && isGiven(value))
      part.given.insert(value);
    else if (op && part.ops.insert(op).second)
      llvm::append_range(pending, op->getOperands());
  }
  return part;
}

SmallVector<StringRef> mlir::rota::namesOf(Value value) {
  SmallVector<StringRef> names;
  for (Operation *user : value.getUsers()) {
    if (!isViewOrWidening(user))
      continue;
    if (auto name = dyn_cast<NameOp>(user))
      names.push_back(name.getName());
    names.append(namesOf(user->getResult(0)));
  }
  return names;
}

/// An op is saved as a whole: to compute one result again is to compute all.
RematDecision mlir::rota::decisionFor(Operation *op,
                                      const RematPolicy &policy) {
  std::optional<RematDecision> last;
  // std::nullopt compares less than any decision.
  for (Value result : op->getResults())
    for (StringRef name : namesOf(result))
      last = std::max(last, policy.decide(name));
  return last.value_or(policy.decideOthers());
}

SmallVector<Value> mlir::rota::inOrder(Joint &joint,
                                       const DenseSet<Value> &values) {
  SmallVector<Value> ordered;
  for (Value argument : joint.body().getArguments())
    if (values.contains(argument))
      ordered.push_back(argument);
  for (Operation &op : joint.body())
    for (Value result : op.getResults())
      if (values.contains(result))
        ordered.push_back(result);
  return ordered;
}

func::FuncOp mlir::rota::buildFunction(func::FuncOp after, FunctionKind kind,
                                       Joint &joint, const JointPart &part) {
  const Signature &row = signatureOf(signatureOf(after).part, kind);
  SmallVector<Value> arguments = joint.values.inOrder(row.arguments);
  SmallVector<Value> results = joint.values.inOrder(row.results);
  OpBuilder builder(after->getContext());
  builder.setInsertionPointAfter(after);
  auto function = func::FuncOp::create(
      builder, joint.function->getLoc(), row.name,
      builder.getFunctionType(ValueRange(arguments).getTypes(),
                              ValueRange(results).getTypes()));
  Block *block = function.addEntryBlock();
  IRMapping mapping;
  mapping.map(arguments, block->getArguments());
  builder.setInsertionPointToEnd(block);
  for (Operation &op : joint.body().without_terminator()) {
    if (!part.ops.contains(&op))
      continue;
    if (auto named = dyn_cast<NameOp>(op))
      mapping.map(named.getResult(), mapping.lookup(named.getValue()));
    else
      builder.clone(op, mapping);
  }
  func::ReturnOp::create(builder, joint.function->getLoc(),
                         llvm::map_to_vector(results, [&](Value value) {
                           return mapping.lookup(value);
                         }));
  return function;
}
