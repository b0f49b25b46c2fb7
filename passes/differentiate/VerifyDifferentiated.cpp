// SPDX-License-Identifier: Apache-2.0
//
// Rejects models that are not differentiated. Labels V1..V6 are those of
// the pass's description.
#include "ir/rota/experts/Experts.h"
#include "ir/rota/model/Model.h"
#include "passes/differentiate/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::rota {
#define GEN_PASS_DEF_VERIFYDIFFERENTIATED
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
/// The backward of one part of a model: a function, or the two of a split one.
struct Backward {
  func::FuncOp whole, input, weight;

  bool isSplit() { return bool(input); }
  /// The function that accumulates.
  func::FuncOp accumulating() { return isSplit() ? weight : whole; }
};

struct VerifyDifferentiated
    : mlir::rota::impl::VerifyDifferentiatedBase<VerifyDifferentiated> {
  void runOnOperation() override {
    FailureOr<Model> model = Model::get(getOperation());
    if (failed(model) || failed(verify(*model)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  LogicalResult verify(const Model &model);
  LogicalResult verifyEmbed(const Model &model);
};
} // namespace

/// V1: either the whole function or both halves stand in `scope`. `owner` is
/// the layer, or the function to differentiate.
static FailureOr<Backward> findBackward(Operation *owner, ModelPart part,
                                        Operation *scope) {
  auto find = [&](FunctionKind kind) { return functionIn(scope, part, kind); };
  auto name = [&](FunctionKind kind) { return signatureOf(part, kind).name; };
  Backward backward{find(FunctionKind::Backward),
                    find(FunctionKind::BackwardInput),
                    find(FunctionKind::BackwardWeight)};
  bool hasHalves = backward.input && backward.weight;
  if (bool(backward.whole) == hasHalves ||
      bool(backward.input) != bool(backward.weight))
    return owner->emitOpError("expected '")
           << name(FunctionKind::Backward) << "', or '"
           << name(FunctionKind::BackwardInput) << "' and '"
           << name(FunctionKind::BackwardWeight) << "', for '"
           << cast<SymbolOpInterface>(owner).getName() << "'";
  return backward;
}

/// V2: `function` has the types that its row of the table asks for.
static LogicalResult verifySignature(const Model &model,
                                     func::FuncOp function) {
  auto typesOf = [&](ArrayRef<Role> roles) {
    SmallVector<Type> types;
    for (Role role : roles) {
      if (isActivation(role)) {
        types.push_back(model.activationType(signatureOf(function).part));
        continue;
      }
      for (const FunctionPort &port : sourcesIn(function->getParentOp(), role))
        types.push_back(port.type());
    }
    return types;
  };
  const Signature &row = signatureOf(function);
  auto expected = FunctionType::get(
      function.getContext(), typesOf(row.arguments), typesOf(row.results));
  if (function.getFunctionType() == expected)
    return success();
  return function.emitOpError("expected the signature ")
         << expected << ", got " << function.getFunctionType();
}

/// V3: `forbidden` accumulates nothing.
static LogicalResult verifyNoAccumulate(func::FuncOp forbidden) {
  WalkResult result = forbidden.walk([&](AccumulateOp accumulate) {
    accumulate.emitOpError("expected gradients of '")
        << accumulate.getParam() << "' outside '" << forbidden.getSymName()
        << "'";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// V3: `backward` accumulates each parameter that `forward` uses and that is
/// not frozen, once, and no other.
static LogicalResult verifyAccumulates(func::FuncOp forward,
                                       func::FuncOp backward) {
  struct Count {
    int64_t expected = 0, actual = 0;
  };
  llvm::MapVector<Operation *, Count> counts;
  forward.walk([&](ReadOp read) {
    ParamOp param = lookupParam(read, read.getParamAttr().getAttr());
    if (!read->use_empty() && !param.getFrozen())
      counts[param].expected = 1;
  });
  backward.walk([&](AccumulateOp accumulate) {
    ++counts[lookupParam(accumulate, accumulate.getParamAttr().getAttr())]
          .actual;
  });
  for (auto [op, count] : counts) {
    if (count.actual == count.expected)
      continue;
    auto param = cast<ParamOp>(op);
    auto diagnostic = backward.emitOpError("expected ")
                      << count.expected
                      << " accumulations into the gradient of '"
                      << param.getSymName() << "', got " << count.actual;
    diagnostic.attachNote(param.getLoc()) << "the parameter";
    return diagnostic;
  }
  return success();
}

/// V4: no names in a backward function.
static LogicalResult verifyNoNames(func::FuncOp function) {
  WalkResult result = function.walk([&](NameOp name) {
    name.emitOpError("expected no name in '")
        << function.getSymName() << "', where residuals are settled";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// V5: a residual is offloaded where it is made and where it is taken, or in
/// neither place, and offloaded ones come last.
static LogicalResult verifyOffloads(LayerOp layer) {
  for (const RoleEdge &edge : residualEdgesIn(layer)) {
    if (edge.source.isOffloaded() == edge.user.isOffloaded())
      continue;
    return func::FuncOp(edge.user.function).emitOpError("expected argument ")
           << edge.user.index << " to be offloaded as "
           << edge.source.describe() << " "
           << (edge.source.isOffloaded() ? "is" : "is not");
  }
  func::FuncOp forward = Model::function(layer, FunctionKind::Forward);
  bool isLast = false;
  for (const FunctionPort &port :
       FunctionRoles(forward).results(Role::Residual)) {
    if (isLast && !port.isOffloaded())
      return forward.emitOpError("expected offloaded residuals last, result ")
             << port.index << " is not offloaded and follows one that is";
    isLast = port.isOffloaded();
  }
  return success();
}

/// V6: nothing is added to an auxiliary loss in a backward function, and
/// nothing is observed there.
static LogicalResult verifyNoAuxiliary(func::FuncOp function) {
  WalkResult result = function.walk([&](Operation *op) {
    if (!isa<AuxiliaryLossOp, ObserveOp>(op))
      return WalkResult::advance();
    op->emitOpError("expected no ")
        << (isa<ObserveOp>(op) ? "observation" : "auxiliary loss") << " in '"
        << function.getSymName() << "', which would count it again";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// V3 and V4 of one part of a model, and that of V6 about backward functions.
static LogicalResult verifyBodies(func::FuncOp forward, Backward &backward) {
  for (func::FuncOp function :
       {backward.whole, backward.input, backward.weight})
    if (function && (failed(verifyNoNames(function)) ||
                     failed(verifyNoAuxiliary(function))))
      return failure();
  if (failed(verifyNoAccumulate(forward)) ||
      (backward.isSplit() && failed(verifyNoAccumulate(backward.input))))
    return failure();
  return verifyAccumulates(forward, backward.accumulating());
}

/// V6 of the whole model.
static LogicalResult verifyAuxiliary(const Model &model) {
  auto losses = model.auxiliaryLosses();
  if (failed(losses))
    return failure();
  if (losses->empty() ||
      model.function(ModelPart::Loss, FunctionKind::LossWeight))
    return success();
  return func::FuncOp(model.loss).emitOpError("expected '")
         << signatureOf(ModelPart::Loss, FunctionKind::LossWeight).name
         << "' beside it, for the auxiliary loss '" << losses->front().name
         << "'";
}

LogicalResult VerifyDifferentiated::verifyEmbed(const Model &model) {
  Backward backward{
      model.function(ModelPart::Embed, FunctionKind::Backward), {}, {}};
  if (!backward.whole)
    return func::FuncOp(model.embed).emitOpError("expected '")
           << signatureOf(ModelPart::Embed, FunctionKind::Backward).name
           << "' beside it";
  return verifyBodies(model.embed, backward);
}

/// V2 of the functions of a layer or of the module.
static LogicalResult verifySignatures(const Model &model, Operation *scope) {
  for (func::FuncOp function : functionsIn(scope))
    if (failed(verifySignature(model, function)))
      return failure();
  return success();
}

LogicalResult VerifyDifferentiated::verify(const Model &model) {
  if (failed(verifySignatures(model, model.module)) ||
      failed(verifyEmbed(model)) || failed(verifyAuxiliary(model)))
    return failure();
  FailureOr<Backward> loss =
      findBackward(model.loss, ModelPart::Loss, model.module);
  if (failed(loss) || failed(verifyBodies(model.loss, *loss)))
    return failure();
  for (LayerOp kind : model.kinds()) {
    FailureOr<Backward> backward = findBackward(kind, ModelPart::Layer, kind);
    if (failed(backward))
      return failure();
    // V1: one answer for the whole model.
    if (backward->isSplit() != loss->isSplit())
      return kind.emitOpError("expected '")
             << kind.getSymName() << "' to be split as 'loss' is";
    if (failed(verifySignatures(model, kind)) || failed(verifyOffloads(kind)) ||
        failed(verifyBodies(Model::function(kind, FunctionKind::Forward),
                            *backward)))
      return failure();
  }
  return success();
}
