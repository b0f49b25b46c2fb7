// SPDX-License-Identifier: Apache-2.0
//
// The reverse walk: from the last op to the first, each op's rule turns the
// cotangents of its results into those of its operands.
#include "passes/differentiate/Joint.h"

#include "ir/rota/Rules.h"
#include "ir/rota/model/Model.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::rota;

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

namespace {
class ReverseWalk {
public:
  ReverseWalk(Joint &joint)
      : joint(joint), builder(joint.body().getTerminator()) {}

  LogicalResult run();

private:
  void findActiveValues();
  LogicalResult visit(Operation &op);
  void add(Value value, Value contribution);
  void addGradient(ReadOp read);
  void addAuxiliary(AuxiliaryLossOp loss);
  void emitAccumulates();

  Joint &joint;
  OpBuilder builder;
  /// Values that depend on a parameter that is not frozen or on an input
  /// activation that is not.
  DenseSet<Value> active;
  DenseMap<Value, Value> cotangents;
  /// Per parameter the sum over its reads, and the location of the last.
  llvm::MapVector<StringAttr, std::pair<Value, Location>> gradients;
};
} // namespace

void ReverseWalk::findActiveValues() {
  for (Value argument : joint.body().getArguments())
    if (argument != joint.seed && isFloat(argument) && !joint.hasFrozenInput)
      active.insert(argument);
  for (Operation &op : joint.body().without_terminator()) {
    if (!joint.forwardOps.contains(&op))
      continue;
    auto read = dyn_cast<ReadOp>(op);
    if (read ? joint.frozen.contains(read.getParamAttr().getAttr())
             : llvm::none_of(op.getOperands(), [&](Value operand) {
                 return active.contains(operand);
               }))
      continue;
    for (Value result : op.getResults())
      if (isFloat(result))
        active.insert(result);
  }
}

/// Sums of cotangents are in the value's type; those of a parameter's copy in
/// f32, as its gradient.
void ReverseWalk::add(Value value, Value contribution) {
  Location loc = contribution.getLoc();
  contribution =
      castElements(builder, loc, contribution, cotangentElement(value));
  Value &sum = cotangents[value];
  sum = sum ? arith::AddFOp::create(builder, loc, sum, contribution)
            : contribution;
}

/// A parameter that is used where nothing depends on it smoothly, as the bias
/// of a choice, has the gradient 0.
void ReverseWalk::addGradient(ReadOp read) {
  if (joint.frozen.contains(read.getParamAttr().getAttr()))
    return;
  Value contribution = cotangents.lookup(read.getResult());
  if (!contribution && read->use_empty())
    return;
  if (!contribution) {
    auto type = cast<RankedTensorType>(read.getType());
    contribution =
        splatConstant(builder, read.getLoc(),
                      type.clone(cotangentElement(read.getResult())), 0.0);
  }
  auto [it, isNew] = gradients.insert(
      {read.getParamAttr().getAttr(), {contribution, read.getLoc()}});
  if (!isNew)
    it->second.first = arith::AddFOp::create(builder, read.getLoc(),
                                             it->second.first, contribution);
}

/// The cotangent of an auxiliary loss is known at the start of the step.
void ReverseWalk::addAuxiliary(AuxiliaryLossOp loss) {
  Value sum = loss.getSum();
  if (active.contains(sum))
    add(sum, AuxiliaryCotangentOp::create(builder, loss.getLoc(), sum.getType(),
                                          loss.getNameAttr()));
}

LogicalResult ReverseWalk::visit(Operation &op) {
  if (auto loss = dyn_cast<AuxiliaryLossOp>(op)) {
    addAuxiliary(loss);
    return success();
  }
  if (auto read = dyn_cast<ReadOp>(op)) {
    addGradient(read);
    return success();
  }
  auto given = llvm::map_to_vector(
      op.getResults(), [&](Value result) { return cotangents.lookup(result); });
  auto needed = llvm::map_to_vector(op.getOperands(), [&](Value operand) {
    return active.contains(operand);
  });
  if (llvm::none_of(given, [](Value value) { return bool(value); }) ||
      llvm::none_of(needed, [](bool isNeeded) { return isNeeded; }))
    return success();
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  if (!rule)
    return op.emitOpError("has no derivative rule");
  FailureOr<SmallVector<Value>> contributions =
      rule.vjp(builder, given, needed);
  if (failed(contributions))
    return failure();
  for (auto [operand, isNeeded, contribution] :
       llvm::zip_equal(op.getOperands(), needed, *contributions))
    if (isNeeded && contribution)
      add(operand, contribution);
  return success();
}

/// Each comes right after the op that makes its gradient, which then need not
/// be kept.
void ReverseWalk::emitAccumulates() {
  for (auto &[param, gradient] : gradients) {
    auto [value, loc] = gradient;
    OpBuilder::InsertionGuard guard(builder);
    if (Operation *definition = value.getDefiningOp();
        definition && !joint.forwardOps.contains(definition))
      builder.setInsertionPointAfter(definition);
    joint.accumulates.push_back(
        AccumulateOp::create(builder, loc, param.getValue(), value));
  }
}

LogicalResult ReverseWalk::run() {
  findActiveValues();
  auto forward = llvm::to_vector(llvm::make_pointer_range(
      llvm::reverse(joint.body().without_terminator())));
  if (active.contains(joint.result))
    add(joint.result, joint.seed);
  for (auto &[term, seed] : joint.terms)
    if (active.contains(term))
      add(term, seed);
  for (Operation *op : forward)
    if (joint.forwardOps.contains(op) && failed(visit(*op)))
      return failure();
  emitAccumulates();
  for (Value input : joint.values.all(Role::InputActivation)) {
    Value cotangent = cotangents.lookup(input);
    if (!cotangent)
      cotangent = splatConstant(builder, input.getLoc(), input.getType(), 0.0);
    joint.values.set(Role::InputCotangent, cotangent);
  }
  return success();
}

FailureOr<Joint> Joint::build(func::FuncOp forward) {
  if (!llvm::hasSingleElement(forward.getBody()))
    return forward.emitOpError("expected one block to differentiate, got ")
           << forward.getBody().getBlocks().size();
  for (Operation &op : forward.getBody().front())
    if (op.getNumRegions() != 0)
      return op.emitOpError("expected no op with a region in a function to "
                            "differentiate");
  Joint joint;
  IRMapping mapping;
  joint.function = cast<func::FuncOp>(forward->clone(mapping));
  for (auto [original, copy] : mapping.getValueMap())
    joint.originals[copy] = original;
  for (Operation &op : joint.body())
    joint.forwardOps.insert(&op);
  auto layer = dyn_cast<LayerOp>(forward->getParentOp());
  joint.hasFrozenInput = layer && layer.getFrozenInput();
  for (ParamOp param : Model::usedParams(forward))
    if (param.getFrozen())
      joint.frozen.insert(param.getSymNameAttr());
  FunctionRoles roles(forward);
  joint.values.assign(roles.arguments(), joint.body().getArguments());
  joint.values.assign(roles.results(),
                      joint.body().getTerminator()->getOperands());
  if (signatureOf(forward).part == ModelPart::Loss) {
    joint.result = joint.values.one(Role::LossSum);
    OpBuilder builder(joint.body().getTerminator());
    joint.seed = splatConstant(builder, joint.result.getLoc(),
                               joint.result.getType(), 1.0);
    // Gradients of both are divided by the weight at the end.
    for (auto [term, port] : llvm::zip_equal(joint.values.all(Role::LossTerm),
                                             roles.results(Role::LossTerm)))
      joint.terms.push_back(
          {term,
           splatConstant(builder, term.getLoc(), term.getType(),
                         port.lossTerm().getCoefficient().convertToDouble())});
  } else {
    joint.result = joint.values.one(Role::OutputActivation);
    joint.seed =
        joint.body().addArgument(joint.result.getType(), joint.result.getLoc());
    joint.values.set(Role::OutputCotangent, joint.seed);
  }
  if (failed(ReverseWalk(joint).run()))
    return failure();
  return joint;
}
