// SPDX-License-Identifier: Apache-2.0
//
// Says what is illegal in a differentiated model. Labels V1..V6 are those of
// the pass's description.
#include "ir/rota/Model.h"
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
    : rota::impl::VerifyDifferentiatedBase<VerifyDifferentiated> {
  void runOnOperation() override {
    FailureOr<Model> model = Model::get(getOperation());
    if (failed(model) || failed(verify(*model)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  LogicalResult verify(const Model &model);
  LogicalResult verifyLayer(LayerOp kind, Backward &backward);
  LogicalResult verifyLoss(const Model &model, Backward &backward);
  LogicalResult verifyEmbed(const Model &model);
};
} // namespace

/// V1: either the whole function or both halves.
static FailureOr<Backward>
findBackward(Operation *owner, StringRef ownerName,
             function_ref<func::FuncOp(StringRef)> lookup, StringRef whole,
             StringRef input, StringRef weight) {
  Backward backward{lookup(whole), lookup(input), lookup(weight)};
  bool hasHalves = backward.input && backward.weight;
  if (bool(backward.whole) == hasHalves ||
      bool(backward.input) != bool(backward.weight))
    return owner->emitOpError("expected '")
           << whole << "', or '" << input << "' and '" << weight << "', for '"
           << ownerName << "'";
  return backward;
}

/// V2: `function` has exactly these types.
static LogicalResult verifySignature(func::FuncOp function,
                                     ArrayRef<Type> inputs,
                                     ArrayRef<Type> results) {
  auto expected = FunctionType::get(function.getContext(), inputs, results);
  if (function.getFunctionType() == expected)
    return success();
  return function.emitOpError("expected the signature ")
         << expected << ", got " << function.getFunctionType();
}

static SmallVector<Type> concat(std::initializer_list<ArrayRef<Type>> parts) {
  SmallVector<Type> all;
  for (ArrayRef<Type> part : parts)
    llvm::append_range(all, part);
  return all;
}

/// V2 of a split backward: what the input half returns beyond `results` is what
/// the weight half takes beyond `arguments`.
static LogicalResult verifyHalves(Backward &backward, ArrayRef<Type> inputs,
                                  ArrayRef<Type> results,
                                  ArrayRef<Type> arguments) {
  ArrayRef<Type> returned = backward.input.getResultTypes();
  ArrayRef<Type> carried =
      returned.drop_front(std::min(results.size(), returned.size()));
  if (failed(
          verifySignature(backward.input, inputs, concat({results, carried}))))
    return failure();
  return verifySignature(backward.weight, concat({arguments, carried}), {});
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

/// V3: `backward` accumulates each parameter that `forward` uses, once, and no
/// other.
static LogicalResult verifyAccumulates(func::FuncOp forward,
                                       func::FuncOp backward) {
  struct Count {
    int64_t expected = 0, actual = 0;
  };
  llvm::MapVector<Operation *, Count> counts;
  forward.walk([&](ReadOp read) {
    if (!read->use_empty())
      counts[lookupParam(read, read.getParamAttr().getAttr())].expected = 1;
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

static constexpr StringRef offloadName =
    RotaDialect::OffloadAttrHelper::getNameStr();

/// V5: residual i of `forward` is argument i + 1 of `backward`, offloaded in
/// both or in neither, and offloaded ones come last.
static LogicalResult verifyOffloads(func::FuncOp forward,
                                    func::FuncOp backward) {
  bool isLast = false;
  for (unsigned i = 1; i < forward.getNumResults(); ++i) {
    bool isMade = bool(forward.getResultAttr(i, offloadName));
    bool isTaken = bool(backward.getArgAttr(i, offloadName));
    if (isMade != isTaken)
      return backward.emitOpError("expected argument ")
             << i << " to be offloaded as result " << i << " of 'forward' "
             << (isMade ? "is" : "is not");
    if (isLast && !isMade)
      return forward.emitOpError("expected offloaded residuals last, result ")
             << i << " is not offloaded and follows one that is";
    isLast = isMade;
  }
  return success();
}

/// V6: nothing is added to an auxiliary loss in a backward function.
static LogicalResult verifyNoAuxiliary(func::FuncOp function) {
  WalkResult result = function.walk([&](AuxiliaryLossOp loss) {
    loss.emitOpError("expected no auxiliary loss in '")
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

LogicalResult VerifyDifferentiated::verifyLayer(LayerOp kind,
                                                Backward &backward) {
  func::FuncOp forward = Model::function(kind, function::forward);
  ArrayRef<Type> results = forward.getResultTypes();
  Type activation = results.front();
  ArrayRef<Type> residuals = results.drop_front();
  if (failed(verifySignature(forward, activation, results)))
    return failure();
  auto inputs = concat({activation, residuals, activation});
  if (failed(backward.isSplit()
                 ? verifyHalves(backward, inputs, activation,
                                concat({activation, residuals}))
                 : verifySignature(backward.whole, inputs, activation)))
    return failure();
  for (func::FuncOp function :
       {backward.whole, backward.input, backward.weight})
    if (function && failed(verifyOffloads(forward, function)))
      return failure();
  return verifyBodies(forward, backward);
}

LogicalResult VerifyDifferentiated::verifyLoss(const Model &model,
                                               Backward &backward) {
  func::FuncOp loss = model.loss;
  ArrayRef<Type> inputs = loss.getArgumentTypes();
  auto results = concat({loss.getResultTypes(), inputs.front()});
  if (failed(backward.isSplit()
                 ? verifyHalves(backward, inputs, results, inputs)
                 : verifySignature(backward.whole, inputs, results)))
    return failure();
  return verifyBodies(loss, backward);
}

LogicalResult VerifyDifferentiated::verifyEmbed(const Model &model) {
  func::FuncOp embed = model.embed;
  Backward backward{model.function(function::embedBackward), {}, {}};
  if (!backward.whole)
    return embed.emitOpError("expected '")
           << function::embedBackward << "' beside it";
  auto inputs = concat({embed.getArgumentTypes(), embed.getResultTypes()});
  if (failed(verifySignature(backward.whole, inputs, {})))
    return failure();
  return verifyBodies(embed, backward);
}

/// V6 of the whole model.
static LogicalResult verifyAuxiliary(const Model &model) {
  auto losses = model.auxiliaryLosses();
  if (failed(losses))
    return failure();
  func::FuncOp loss = model.loss;
  func::FuncOp weight = model.function(function::lossWeight);
  if (losses->empty())
    return success();
  if (!weight)
    return loss.emitOpError("expected '")
           << function::lossWeight << "' beside it, for the auxiliary loss '"
           << losses->front().name << "'";
  return verifySignature(weight, loss.getArgumentTypes()[1],
                         loss.getResultTypes()[1]);
}

LogicalResult VerifyDifferentiated::verify(const Model &model) {
  if (failed(verifyEmbed(model)) || failed(verifyAuxiliary(model)))
    return failure();
  FailureOr<Backward> loss = findBackward(
      model.loss, function::loss,
      [&](StringRef name) { return model.function(name); },
      function::lossBackward, function::lossBackwardInput,
      function::lossBackwardWeight);
  if (failed(loss) || failed(verifyLoss(model, *loss)))
    return failure();
  for (LayerOp kind : model.kinds()) {
    FailureOr<Backward> backward = findBackward(
        kind, kind.getSymName(),
        [&](StringRef name) { return Model::function(kind, name); },
        function::backward, function::backwardInput, function::backwardWeight);
    if (failed(backward))
      return failure();
    // V1: one answer for the whole model.
    if (backward->isSplit() != loss->isSplit())
      return kind.emitOpError("expected '")
             << kind.getSymName() << "' to be split as 'loss' is";
    if (failed(verifyLayer(kind, *backward)))
      return failure();
  }
  return success();
}
