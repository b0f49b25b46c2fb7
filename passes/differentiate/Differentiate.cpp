// SPDX-License-Identifier: Apache-2.0
//
// Adds the backward functions of a model: a joint function for each function as
// built, cut as policy and split say.
#include "ir/pipe/Pipe.h"
#include "ir/rota/model/Model.h"
#include "passes/differentiate/Partition.h"
#include "passes/differentiate/Passes.h"
#include "runtime/text/Nearest.h"

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
struct JointCut {
  JointPart input, weight; // `weight` only when split
  /// Residuals are those that stay on the device, then the offloaded ones.
  SmallVector<Value> residuals, cotangentResiduals;
  size_t offloaded = 0;
};

struct Differentiate : mlir::rota::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override;

private:
  FailureOr<bool> decideSplit();
  LogicalResult checkAsBuilt(const Model &model);
  LogicalResult checkNames(const Model &model, const RematPolicy &policy);
  FailureOr<RematPolicy> policyOf(LayerOp kind, const Model &model,
                                  const RematPolicy &policy);
  LogicalResult differentiate(func::FuncOp forward, bool isSplit,
                              const RematPolicy *policy = nullptr,
                              bool keepsCotangents = true);
  LogicalResult makeLossWeight(func::FuncOp loss);
  JointCut cut(Joint &joint, ArrayRef<Value> roots, bool isSplit,
               const RematPolicy *policy, bool keepsCotangents);
  void extendForward(func::FuncOp forward, Joint &joint, const JointCut &cut);
  void reportRecomputed(Joint &joint, ArrayRef<const JointPart *> parts,
                        StringRef path);
};
} // namespace

/// Reads from the timeline whether backwards are split; without a timeline the
/// option says it.
FailureOr<bool> Differentiate::decideSplit() {
  auto programs = getOperation().getOps<pipe::ProgramOp>();
  pipe::TimelineOp timeline =
      programs.empty() ? pipe::TimelineOp() : (*programs.begin()).getTimeline();
  if (!timeline)
    return bool(split);
  if (split)
    return getOperation().emitError(
        "expected no 'split' for a module with a timeline, which says it");
  return ::rota::pipe::hasAny(timeline.read(),
                              ::rota::ActionKind::BackwardInput);
}

/// Checks that the functions which are there are those that builders make.
LogicalResult Differentiate::checkAsBuilt(const Model &model) {
  SmallVector<Operation *> scopes = {model.module};
  llvm::append_range(scopes, model.kinds());
  for (Operation *scope : scopes)
    for (func::FuncOp function : functionsIn(scope)) {
      if (signatureOf(function).kind != FunctionKind::Forward)
        return function.emitOpError("expected a model as built, this function "
                                    "is there already");
      if (failed(verifyCountsAsBuilt(function)))
        return failure();
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
      getOperation().emitWarning("'remat': no layer has a value named '")
          << written << "', so that its entry has no effect";
      continue;
    }
    auto diagnostic =
        getOperation().emitError("'remat': expected a value named '")
        << written << "' in a layer, got none";
    diagnostic << ::rota::didYouMean(::rota::nearestName(written, names));
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

/// The policy that `kind` has of its own, else `policy`, which is for all.
FailureOr<RematPolicy> Differentiate::policyOf(LayerOp kind, const Model &model,
                                               const RematPolicy &policy) {
  auto attribute = RotaDialect::RematAttrHelper(&getContext());
  if (!attribute.isAttrPresent(kind)) {
    if (isRematList(remat))
      return kind.emitError("'remat': expected one policy, as 'assign-remat' "
                            "has given this layer none, got '")
             << remat << "'";
    return policy;
  }
  FailureOr<RematPolicy> own =
      RematPolicy::parse(attribute.getAttr(kind).getValue(), [&] {
        return std::move(kind.emitError() << "'rota.remat': ");
      });
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
/// saves residuals; without, the first part holds it. If not split, the first
/// part is all. If no cotangents are kept, the second part makes again what it
/// needs.
JointCut Differentiate::cut(Joint &joint, ArrayRef<Value> roots, bool isSplit,
                            const RematPolicy *policy, bool keepsCotangents) {
  auto isResidual = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return policy && op && joint.forwardOps.contains(op) &&
           decisionFor(op, *policy) != RematDecision::Recompute;
  };
  JointCut result;
  if (!isSplit) {
    result.input = collectPart(roots, joint.accumulates, isResidual);
    result.residuals = inOrder(joint, result.input.given);
    if (policy)
      orderOffloadedLast(result, *policy);
    return result;
  }
  result.input = collectPart(roots, {}, isResidual);
  result.weight = collectPart({}, joint.accumulates, [&](Value value) {
    Operation *op = value.getDefiningOp();
    bool isMade = op ? result.input.ops.contains(op) : value == joint.seed;
    return isResidual(value) || (keepsCotangents && isMade);
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

/// Marks the offloaded ones of `residuals`, a function's arguments or results.
static void markOffloaded(ArrayRef<FunctionPort> residuals,
                          const JointCut &cut) {
  for (const FunctionPort &residual : residuals.take_back(cut.offloaded))
    residual.setOffloaded();
}

/// Marks what a backward function takes from the host: offloaded residuals, and
/// the activation where the policy offloads a layer's input.
static void markOffloaded(func::FuncOp backward, const JointCut &cut,
                          const RematPolicy *policy) {
  FunctionRoles roles(backward);
  markOffloaded(roles.arguments(Role::Residual), cut);
  if (policy && policy->decide(layerInputName) == RematDecision::Offload)
    roles.argument(Role::InputActivation).setOffloaded();
}

/// Makes the residuals results of `forward`.
void Differentiate::extendForward(func::FuncOp forward, Joint &joint,
                                  const JointCut &cut) {
  size_t firstOffloaded = cut.residuals.size() - cut.offloaded;
  std::string path = pathOf(forward);
  SmallVector<Value> originals;
  SmallVector<Attribute> namesOfResiduals;
  for (auto [index, residual] : llvm::enumerate(cut.residuals)) {
    bool isOffloaded = index >= firstOffloaded;
    Value original = joint.originals.lookup(residual);
    originals.push_back(original);
    ++savedValues;
    savedBytes += bytesOf(original);
    if (isOffloaded)
      offloadedBytes += bytesOf(original);
    auto remark = remark::passed(
        original.getLoc(),
        remark::RemarkOpts::name(isOffloaded ? "offloaded" : "saved")
            .category("differentiate")
            .function(path));
    SmallVector<StringRef> names = namesOf(residual);
    for (StringRef name : names)
      remark << remark::metric("Name", name);
    namesOfResiduals.push_back(Builder(&getContext()).getStrArrayAttr(names));
    remark << remark::metric("Bytes", bytesOf(original));
  }
  Operation *terminator = forward.getBody().front().getTerminator();
  RoleValues<Value> returned;
  returned.assign(FunctionRoles(forward).results(), terminator->getOperands());
  returned.setAll(Role::Residual, originals);
  terminator->setOperands(returned.inOrder(signatureOf(forward).results));
  forward.setType(FunctionType::get(&getContext(), forward.getArgumentTypes(),
                                    terminator->getOperandTypes()));
  markOffloaded(FunctionRoles(forward).results(Role::Residual), cut);
  if (!namesOfResiduals.empty())
    RotaDialect::ResidualNamesAttrHelper(&getContext())
        .setAttr(forward->getParentOp(),
                 ArrayAttr::get(&getContext(), namesOfResiduals));
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

/// Makes the backward of `forward`, whole or in two halves. With a policy
/// `forward` gets residuals; without, the backward holds the forward ops.
LogicalResult Differentiate::differentiate(func::FuncOp forward, bool isSplit,
                                           const RematPolicy *policy,
                                           bool keepsCotangents) {
  FailureOr<Joint> joint = Joint::build(forward);
  if (failed(joint))
    return failure();
  const Signature &whole =
      signatureOf(signatureOf(forward).part, FunctionKind::Backward);
  JointCut parts = cut(*joint, joint->values.inOrder(whole.results), isSplit,
                       policy, keepsCotangents);
  joint->values.setAll(Role::Residual, parts.residuals);
  joint->values.setAll(Role::CotangentResidual, parts.cotangentResiduals);
  if (policy) {
    extendForward(forward, *joint, parts);
    reportRecomputed(*joint, {&parts.input, &parts.weight}, pathOf(forward));
  } else {
    reportRecomputed(*joint, {&parts.weight}, pathOf(forward));
  }
  SmallVector<func::FuncOp> functions;
  if (isSplit) {
    functions.push_back(buildFunction(forward, FunctionKind::BackwardInput,
                                      *joint, parts.input));
    functions.push_back(buildFunction(
        functions.back(), FunctionKind::BackwardWeight, *joint, parts.weight));
  } else {
    functions.push_back(
        buildFunction(forward, FunctionKind::Backward, *joint, parts.input));
  }
  for (func::FuncOp function : functions)
    markOffloaded(function, parts, policy);
  return success();
}

/// Makes the function that gives the main loss's weight before the step runs,
/// which the cotangents of auxiliary losses need.
LogicalResult Differentiate::makeLossWeight(func::FuncOp loss) {
  FailureOr<Joint> joint = Joint::build(loss);
  if (failed(joint))
    return failure();
  JointPart part = collectPart(joint->values.all(Role::LossWeight), {},
                               [](Value) { return false; });
  Value activation = joint->values.one(Role::InputActivation);
  for (Operation *op : part.ops)
    if (llvm::is_contained(op->getOperands(), activation))
      return loss.emitOpError("expected a weight that depends on the targets "
                              "alone, as a layer has an auxiliary loss, got "
                              "one that depends on the activation");
  buildFunction(loss, FunctionKind::LossWeight, *joint, part);
  return success();
}

void Differentiate::runOnOperation() {
  StringRef ofAll = isRematList(remat) ? StringRef("none") : StringRef(remat);
  FailureOr<RematPolicy> policy = RematPolicy::parse(ofAll, [&] {
    return std::move(getOperation().emitError() << "'remat': ");
  });
  if (failed(policy))
    return signalPassFailure();
  FailureOr<Model> model = Model::get(getOperation());
  if (failed(model) || failed(checkAsBuilt(*model)) ||
      failed(checkNames(*model, *policy)))
    return signalPassFailure();
  FailureOr<bool> isSplit = decideSplit();
  if (failed(isSplit))
    return signalPassFailure();
  auto auxiliary = model->auxiliaryLosses();
  if (failed(auxiliary) ||
      (!auxiliary->empty() && failed(makeLossWeight(model->loss))))
    return signalPassFailure();
  for (LayerOp kind : model->kinds()) {
    FailureOr<RematPolicy> own = policyOf(kind, *model, *policy);
    if (failed(own) ||
        failed(differentiate(Model::function(kind, FunctionKind::Forward),
                             *isSplit, &*own)))
      return signalPassFailure();
  }
  // Tokens have no cotangent, so that all of it is the weight's. Blocks of the
  // loss are there so that the cotangents of no two are in memory.
  if (failed(differentiate(model->embed, /*isSplit=*/false)) ||
      failed(differentiate(model->loss, *isSplit, /*policy=*/nullptr,
                           /*keepsCotangents=*/model->lossCalls() == 1)))
    return signalPassFailure();
}
