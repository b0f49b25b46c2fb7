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

static constexpr StringRef offloadName =
    RotaDialect::OffloadAttrHelper::getNameStr();

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
struct JointCut {
  JointPart input, weight; // `weight` only when split
  /// Residuals are those that stay on the device, then the offloaded ones.
  SmallVector<Value> residuals, cotangentResiduals;
  size_t offloaded = 0;
};

struct Differentiate : rota::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override;

private:
  LogicalResult checkAsBuilt(const Model &model);
  LogicalResult checkNames(const Model &model, const RematPolicy &policy);
  FailureOr<RematPolicy> policyOf(LayerOp kind, const Model &model,
                                  const RematPolicy &policy);
  LogicalResult differentiateLayer(LayerOp kind, const RematPolicy &policy);
  LogicalResult differentiateEmbed(func::FuncOp embed);
  LogicalResult differentiateLoss(func::FuncOp loss);
  LogicalResult makeLossWeight(func::FuncOp loss);
  JointCut cut(Joint &joint, ArrayRef<Value> roots, const RematPolicy *policy);
  void extendForward(func::FuncOp forward, Joint &joint, const JointCut &cut);
  void reportRecomputed(Joint &joint, ArrayRef<const JointPart *> parts,
                        StringRef path);
};
} // namespace

/// Checks that no function of differentiation is there yet.
LogicalResult Differentiate::checkAsBuilt(const Model &model) {
  auto refuse = [](func::FuncOp function) {
    return function.emitOpError("expected a model as built, this function is "
                                "there already");
  };
  for (StringRef name : {function::embedBackward, function::lossBackward,
                         function::lossBackwardInput,
                         function::lossBackwardWeight, function::lossWeight})
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

/// Checks that each name of a user's own policy names a value of a layer. A
/// name that other models of the field have is a warning: tables are shared.
LogicalResult Differentiate::checkNames(const Model &model,
                                        const RematPolicy &policy) {
  llvm::SetVector<StringRef> names;
  for (LayerOp kind : model.kinds())
    kind.walk([&](NameOp name) { names.insert(name.getName()); });
  for (StringRef written : policy.writtenNames()) {
    if (names.contains(written) || written == layerInputName)
      continue;
    if (isKnownValueName(written)) {
      getOperation().emitWarning("no layer has a value named '")
          << written << "': what the remat policy says of it has no effect";
      continue;
    }
    auto diagnostic = getOperation().emitError("expected a value named '")
                      << written << "' in a layer, as the remat policy says";
    StringRef nearest = nearestName(written, names.getArrayRef());
    if (!nearest.empty())
      diagnostic << "; did you mean '" << nearest << "'?";
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

/// The policy that `kind` has of its own, else `policy`.
FailureOr<RematPolicy> Differentiate::policyOf(LayerOp kind, const Model &model,
                                               const RematPolicy &policy) {
  auto attribute = RotaDialect::RematAttrHelper(&getContext());
  if (!attribute.isAttrPresent(kind))
    return policy;
  FailureOr<RematPolicy> own = RematPolicy::parse(
      attribute.getAttr(kind).getValue(), [&] { return kind.emitOpError(); });
  if (failed(own) || failed(checkNames(model, *own)))
    return failure();
  return own;
}

static void orderOffloadedLast(JointCut &cut, const RematPolicy &policy) {
  SmallVector<Value> onDevice, offloaded;
  for (Value residual : cut.residuals) {
    bool stays =
        decisionFor(residual.getDefiningOp(), policy) == RematDecision::Device;
    (stays ? onDevice : offloaded).push_back(residual);
  }
  cut.offloaded = offloaded.size();
  cut.residuals = std::move(onDevice);
  cut.residuals.append(offloaded);
}

/// Cuts `joint`. With a policy the forward part is another function, which
/// saves residuals; without, the first part holds it. Without `split` the first
/// part is all.
JointCut Differentiate::cut(Joint &joint, ArrayRef<Value> roots,
                            const RematPolicy *policy) {
  auto isResidual = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return policy && op && joint.forwardOps.contains(op) &&
           decisionFor(op, *policy) != RematDecision::Recompute;
  };
  JointCut result;
  if (!split) {
    result.input = collectPart(roots, joint.accumulates, isResidual);
    result.residuals = inOrder(joint, result.input.given);
    if (policy)
      orderOffloadedLast(result, *policy);
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
  if (policy)
    orderOffloadedLast(result, *policy);
  result.cotangentResiduals = inOrder(joint, cotangentResiduals);
  savedCotangents += result.cotangentResiduals.size();
  return result;
}

/// Gives `forward` the residuals as further results.
void Differentiate::extendForward(func::FuncOp forward, Joint &joint,
                                  const JointCut &cut) {
  Operation *terminator = forward.getBody().front().getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  size_t firstOffloaded = cut.residuals.size() - cut.offloaded;
  std::string path = pathOf(forward);
  for (auto [index, residual] : llvm::enumerate(cut.residuals)) {
    bool isOffloaded = index >= firstOffloaded;
    Value original = joint.originals.lookup(residual);
    results.push_back(original);
    ++savedValues;
    savedBytes += bytesOf(original);
    if (isOffloaded)
      offloadedBytes += bytesOf(original);
    auto remark = remark::passed(
        original.getLoc(),
        remark::RemarkOpts::name(isOffloaded ? "offloaded" : "saved")
            .category("differentiate")
            .function(path));
    for (StringRef name : namesOf(residual))
      remark << remark::metric("Name", name);
    remark << remark::metric("Bytes", bytesOf(original));
  }
  terminator->setOperands(results);
  auto type = forward.getFunctionType();
  forward.setType(FunctionType::get(&getContext(), type.getInputs(),
                                    ValueRange(results).getTypes()));
  for (size_t i = 1 + firstOffloaded; i < results.size(); ++i)
    forward.setResultAttr(i, offloadName, UnitAttr::get(&getContext()));
}

/// Marks what a backward function takes from the host: the activation where the
/// policy offloads a layer's input, and the offloaded residuals behind the
/// rest.
static void markOffloaded(func::FuncOp backward, const JointCut &cut,
                          const RematPolicy &policy) {
  auto mark = UnitAttr::get(backward.getContext());
  if (policy.decide(layerInputName) == RematDecision::Offload)
    backward.setArgAttr(0, offloadName, mark);
  size_t end = 1 + cut.residuals.size();
  for (size_t i = end - cut.offloaded; i < end; ++i)
    backward.setArgAttr(i, offloadName, mark);
}

void Differentiate::reportRecomputed(Joint &joint,
                                     ArrayRef<const JointPart *> parts,
                                     StringRef path) {
  for (Operation &op : joint.body()) {
    if (!joint.forwardOps.contains(&op) || isFree(&op))
      continue;
    for (const JointPart *part : parts) {
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
  JointCut parts = cut(*joint, joint->inputCotangent, &policy);
  extendForward(forward, *joint, parts);
  reportRecomputed(*joint, {&parts.input, &parts.weight}, pathOf(forward));
  SmallVector<Value> arguments =
      concat({activation, parts.residuals, joint->cotangent});
  if (!split) {
    func::FuncOp whole =
        buildFunction(forward, function::backward, *joint, parts.input,
                      arguments, joint->inputCotangent);
    markOffloaded(whole, parts, policy);
    return success();
  }
  func::FuncOp input = buildFunction(
      forward, function::backwardInput, *joint, parts.input, arguments,
      concat({joint->inputCotangent, parts.cotangentResiduals}));
  func::FuncOp weight = buildFunction(
      input, function::backwardWeight, *joint, parts.weight,
      concat({activation, parts.residuals, parts.cotangentResiduals}), {});
  markOffloaded(input, parts, policy);
  markOffloaded(weight, parts, policy);
  return success();
}

/// Makes the function that gives the main loss's weight before the step runs,
/// which the cotangents of auxiliary losses need.
LogicalResult Differentiate::makeLossWeight(func::FuncOp loss) {
  FailureOr<Joint> joint = Joint::build(loss, CotangentSeed::One);
  if (failed(joint))
    return failure();
  Value weight = joint->outputs()[1];
  JointPart part = collectPart(weight, {}, [](Value) { return false; });
  Value activation = joint->body().getArgument(0);
  for (Operation *op : part.ops)
    if (llvm::is_contained(op->getOperands(), activation))
      return loss.emitOpError("expected a weight that depends on the targets "
                              "alone, as a layer has an auxiliary loss, got "
                              "one that depends on the activation");
  buildFunction(loss, function::lossWeight, *joint, part,
                joint->body().getArgument(1), weight);
  return success();
}

/// Tokens have no cotangent, so that all of it is the weight's.
LogicalResult Differentiate::differentiateEmbed(func::FuncOp embed) {
  FailureOr<Joint> joint = Joint::build(embed, CotangentSeed::Argument);
  if (failed(joint))
    return failure();
  JointPart part =
      collectPart({}, joint->accumulates, [](Value) { return false; });
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
  JointCut parts = cut(*joint, roots, /*policy=*/nullptr);
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
  auto auxiliary = model->auxiliaryLosses();
  if (failed(auxiliary) ||
      (!auxiliary->empty() && failed(makeLossWeight(model->loss))))
    return signalPassFailure();
  for (LayerOp kind : model->kinds()) {
    FailureOr<RematPolicy> own = policyOf(kind, *model, *policy);
    if (failed(own) || failed(differentiateLayer(kind, *own)))
      return signalPassFailure();
  }
  if (failed(differentiateEmbed(model->embed)) ||
      failed(differentiateLoss(model->loss)))
    return signalPassFailure();
}
