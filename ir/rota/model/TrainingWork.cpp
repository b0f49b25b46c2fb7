// SPDX-License-Identifier: Apache-2.0
#include "ir/rota/model/TrainingWork.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

/// What a value of a forward function depends on.
enum class Source {
  Constant,   // nothing that trains
  Frozen,     // frozen parameters alone
  Weight,     // parameters alone, of which one trains
  Activation, // an activation that has a cotangent
};

class WorkCount {
public:
  WorkCount(func::FuncOp forward, function_ref<double(Operation *)> costOf)
      : costOf(costOf) {
    auto layer = dyn_cast<LayerOp>(forward->getParentOp());
    hasFrozenInput = layer && layer.getFrozenInput();
    for (Value argument : forward.getArguments())
      sources[argument] =
          hasFrozenInput ? Source::Constant : Source::Activation;
    forward.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != forward)
        visit(op);
    });
  }

  TrainingWork work;

private:
  bool has(Operation *op, Source source) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return isa<FloatType>(getElementTypeOrSelf(operand)) &&
             sources.lookup(operand) == source;
    });
  }

  Source sourceOf(Operation *op) const {
    if (auto read = dyn_cast<ReadOp>(op))
      return lookupParam(read, read.getParamAttr().getAttr()).getFrozen()
                 ? Source::Frozen
                 : Source::Weight;
    bool hasWeight = has(op, Source::Weight);
    if (has(op, Source::Activation) || (hasWeight && has(op, Source::Constant)))
      return Source::Activation;
    return hasWeight                   ? Source::Weight
           : has(op, Source::Constant) ? Source::Constant
           : has(op, Source::Frozen)   ? Source::Frozen
                                       : Source::Constant;
  }

  void visit(Operation *op) {
    Source source = sourceOf(op);
    for (Value result : op->getResults())
      sources[result] = source;
    double cost = costOf(op);
    work.forward += cost;
    if (source == Source::Frozen ||
        (hasFrozenInput && source == Source::Constant))
      return;
    if (!hasFrozenInput || has(op, Source::Activation))
      work.input += cost;
    if (!has(op, Source::Frozen))
      work.weight += cost;
  }

  function_ref<double(Operation *)> costOf;
  bool hasFrozenInput;
  DenseMap<Value, Source> sources;
};

} // namespace

TrainingWork
mlir::rota::trainingWork(func::FuncOp forward,
                         function_ref<double(Operation *)> costOf) {
  return WorkCount(forward, costOf).work;
}
