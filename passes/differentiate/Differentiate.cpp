// SPDX-License-Identifier: Apache-2.0
//
// Adds the backward functions of a model: a joint function for each function as
// built, cut as policy and split say.
#include "ir/rota/Model.h"
#include "passes/differentiate/Partition.h"
#include "passes/differentiate/Passes.h"

#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return llvm::divideCeil(type.getNumElements() * type.getElementTypeBitWidth(),
                          8);
}

/// "kind.forward" or "loss": the function that a remark is about.
static std::string pathOf(func::FuncOp function) {
  auto layer = function->getParentOfType<LayerOp>();
  return layer ? (layer.getSymName() + "." + function.getSymName()).str()
               : function.getSymName().str();
}

namespace {
/// The parts of a joint function: what needs the input's cotangent, the rest,
/// and what crosses the cuts.
struct Cut {
  Part input, weight; // `weight` only when split
  SmallVector<Value> residuals, cotangentResiduals;
};

struct Differentiate : rota::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override;

private:
  LogicalResult checkAsBuilt(const Model &model);
  LogicalResult checkNames(const Model &model, const RematPolicy &policy);
  LogicalResult differentiateLayer(LayerOp kind, const RematPolicy &policy);
  LogicalResult differentiateEmbed(func::FuncOp embed);
  LogicalResult differentiateLoss(func::FuncOp loss);
  Cut cut(Joint &joint, ArrayRef<Value> roots, const RematPolicy *policy);
  void extendForward(func::FuncOp forward, Joint &joint,
                     ArrayRef<Value> residuals);
  void reportRecomputed(Joint &joint, ArrayRef<const Part *> parts,
                        StringRef path);
};
} // namespace

/// Checks that no function of differentiation is there yet.
LogicalResult Differentiate::checkAsBuilt(const Model &model) {
  auto refuse = [](func::FuncOp function) {
    return function.emitOpError("expected a model as built, this function is "
                                "there already");
  };
  for (StringRef name :
       {function::embedBackward, function::lossBackward,
        function::lossBackwardInput, function::lossBackwardWeight})
    if (func::FuncOp function = model.function(name))
      return refuse(function);
  for (LayerOp kind : model.kinds()) {
    for (StringRef name : {function::backward, function::backwardInput,
                           function::backwardWeight})
      if (func::FuncOp function = Model::function(kind, name))
        return refuse(function);
    func::FuncOp forward = Model::function(kind, function::forward);
    if (forward.getNumArguments() != 1 || forward.getNumResults() != 1)
      return forward.emitOpError("expected 1 argument and 1 result, got ")
             << forward.getNumArguments() << " and " << forward.getNumResults();
  }
  return success();
}

/// Checks that each name of a user's own policy names a value of a layer.
LogicalResult Differentiate::checkNames(const Model &model,
                                        const RematPolicy &policy) {
  llvm::SetVector<StringRef> names;
  for (LayerOp kind : model.kinds())
    kind.walk([&](NameOp name) { names.insert(name.getName()); });
  for (StringRef required : policy.requiredNames()) {
    if (names.contains(required))
      continue;
    auto diagnostic = getOperation().emitError("expected a value named '")
                      << required << "' in a layer, as the remat policy says";
    auto &note = diagnostic.attachNote(model.stack->getLoc());
    note << "the layers name ";
    if (names.empty())
      return note << "no value", failure();
    llvm::interleaveComma(names, note,
                          [&](StringRef name) { note << "'" << name << "'"; });
    return failure();
  }
  return success();
}

/// Cuts `joint`. With a policy the forward part is another function, which
/// saves residuals; without, the first part holds it. Without `split` the first
/// part is all.
Cut Differentiate::cut(Joint &joint, ArrayRef<Value> roots,
                       const RematPolicy *policy) {
  auto isResidual = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return policy && op && joint.forwardOps.contains(op) &&
           isSaved(op, *policy);
  };
  Cut result;
  if (!split) {
    result.input = collectPart(roots, joint.accumulates, isResidual);
    result.residuals = inOrder(joint, result.input.given);
    return result;
  }
  result.input = collectPart(roots, {}, isResidual);
  result.weight = collectPart({}, joint.accumulates, [&](Value value) {
    Operation *op = value.getDefiningOp();
    return isResidual(value) ||
           (op ? result.input.ops.contains(op) : value == joint.cotangent);
  });
  DenseSet<Value> residuals = result.input.given, cotangentResiduals;
  for (Value value : result.weight.given)
    (isResidual(value) ? residuals : cotangentResiduals).insert(value);
  result.residuals = inOrder(joint, residuals);
  result.cotangentResiduals = inOrder(joint, cotangentResiduals);
  savedCotangents += result.cotangentResiduals.size();
  return result;
}

/// Gives `forward` the residuals as further results.
void Differentiate::extendForward(func::FuncOp forward, Joint &joint,
                                  ArrayRef<Value> residuals) {
  Operation *terminator = forward.getBody().front().getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  for (Value residual : residuals) {
    Value original = joint.originals.lookup(residual);
    results.push_back(original);
    ++savedValues;
    savedBytes += bytesOf(original);
    remark::passed(original.getLoc(), remark::RemarkOpts::name("saved")
                                          .category("differentiate")
                                          .function(pathOf(forward)))
        << remark::metric("Bytes", bytesOf(original));
  }
  terminator->setOperands(results);
  auto type = forward.getFunctionType();
  forward.setFunctionType(FunctionType::get(&getContext(), type.getInputs(),
                                            ValueRange(results).getTypes()));
}

void Differentiate::reportRecomputed(Joint &joint, ArrayRef<const Part *> parts,
                                     StringRef path) {
  for (Operation &op : joint.body()) {
    if (!joint.forwardOps.contains(&op) || isFree(&op))
      continue;
    for (const Part *part : parts) {
      if (!part->ops.contains(&op))
        continue;
      ++recomputedOps;
      remark::passed(op.getLoc(), remark::RemarkOpts::name("recomputed")
                                      .category("differentiate")
                                      .function(path))
          << remark::metric("Op", op.getName().getStringRef());
    }
  }
}

static SmallVector<Value> concat(std::initializer_list<ArrayRef<Value>> parts) {
  SmallVector<Value> all;
  for (ArrayRef<Value> part : parts)
    llvm::append_range(all, part);
  return all;
}

LogicalResult Differentiate::differentiateLayer(LayerOp kind,
                                                const RematPolicy &policy) {
  func::FuncOp forward = Model::function(kind, function::forward);
  FailureOr<Joint> joint = Joint::build(forward, CotangentSeed::Argument);
  if (failed(joint))
    return failure();
  Value activation = joint->body().getArgument(0);
  Cut parts = cut(*joint, joint->inputCotangent, &policy);
  extendForward(forward, *joint, parts.residuals);
  reportRecomputed(*joint, {&parts.input, &parts.weight}, pathOf(forward));
  SmallVector<Value> arguments =
      concat({activation, parts.residuals, joint->cotangent});
  if (!split) {
    buildFunction(forward, function::backward, *joint, parts.input, arguments,
                  joint->inputCotangent);
    return success();
  }
  func::FuncOp input = buildFunction(
      forward, function::backwardInput, *joint, parts.input, arguments,
      concat({joint->inputCotangent, parts.cotangentResiduals}));
  buildFunction(input, function::backwardWeight, *joint, parts.weight,
                concat({activation, parts.residuals, parts.cotangentResiduals}),
                {});
  return success();
}

/// Tokens have no cotangent, so that all of it is the weight's.
LogicalResult Differentiate::differentiateEmbed(func::FuncOp embed) {
  FailureOr<Joint> joint = Joint::build(embed, CotangentSeed::Argument);
  if (failed(joint))
    return failure();
  Part part = collectPart({}, joint->accumulates, [](Value) { return false; });
  buildFunction(embed, function::embedBackward, *joint, part,
                {joint->body().getArgument(0), joint->cotangent}, {});
  return success();
}

LogicalResult Differentiate::differentiateLoss(func::FuncOp loss) {
  FailureOr<Joint> joint = Joint::build(loss, CotangentSeed::One);
  if (failed(joint))
    return failure();
  SmallVector<Value> arguments(joint->body().getArguments());
  SmallVector<Value> roots(joint->outputs());
  roots.push_back(joint->inputCotangent);
  Cut parts = cut(*joint, roots, /*policy=*/nullptr);
  if (!split) {
    buildFunction(loss, function::lossBackward, *joint, parts.input, arguments,
                  roots);
    return success();
  }
  reportRecomputed(*joint, {&parts.weight}, pathOf(loss));
  func::FuncOp input =
      buildFunction(loss, function::lossBackwardInput, *joint, parts.input,
                    arguments, concat({roots, parts.cotangentResiduals}));
  buildFunction(input, function::lossBackwardWeight, *joint, parts.weight,
                concat({arguments, parts.cotangentResiduals}), {});
  return success();
}

void Differentiate::runOnOperation() {
  FailureOr<RematPolicy> policy =
      RematPolicy::parse(remat, [&] { return getOperation().emitError(); });
  if (failed(policy))
    return signalPassFailure();
  FailureOr<Model> model = Model::get(getOperation());
  if (failed(model) || failed(checkAsBuilt(*model)) ||
      failed(checkNames(*model, *policy)))
    return signalPassFailure();
  for (LayerOp kind : model->kinds())
    if (failed(differentiateLayer(kind, *policy)))
      return signalPassFailure();
  if (failed(differentiateEmbed(model->embed)) ||
      failed(differentiateLoss(model->loss)))
    return signalPassFailure();
}
