// SPDX-License-Identifier: Apache-2.0
//
// A model as passes see it.
#include "ir/rota/Model.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::rota;

ParamOp rota::lookupParam(Operation *user, StringAttr name) {
  for (Operation *table = SymbolTable::getNearestSymbolTable(user); table;
       table = table->getParentOp()
                   ? SymbolTable::getNearestSymbolTable(table->getParentOp())
                   : nullptr)
    if (auto param = llvm::dyn_cast_or_null<ParamOp>(
            SymbolTable::lookupSymbolIn(table, name)))
      return param;
  return {};
}

static LogicalResult checkActivation(func::FuncOp function, Type type,
                                     Type activation) {
  if (type == activation)
    return success();
  return function.emitOpError("expected an activation of type ")
         << activation << " as in the layers, got " << type;
}

static bool isStaticFloat(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         isa<FloatType>(tensor.getElementType());
}

FailureOr<Model> Model::get(ModuleOp module) {
  Model model;
  model.module = module;
  for (auto stack : module.getOps<StackOp>()) {
    if (model.stack) {
      auto diagnostic = stack.emitOpError("expected one stack in a model");
      diagnostic.attachNote(model.stack.getLoc()) << "the other stack";
      return diagnostic;
    }
    model.stack = stack;
  }
  if (!model.stack)
    return module.emitError("expected a 'rota.stack' in the model");
  model.embed = model.function(function::embed);
  model.loss = model.function(function::loss);
  if (!model.embed || !model.loss)
    return module.emitError(
               "expected functions 'embed' and 'loss' in the model, '")
           << (model.embed ? "loss" : "embed") << "' is missing";
  RankedTensorType activation = model.activationType();
  if (!isStaticFloat(activation))
    return model.stack.emitOpError("expected an activation of static shape and "
                                   "floating-point elements, got ")
           << activation;
  FunctionType embed = model.embed.getFunctionType();
  if (embed.getNumInputs() != 1 || embed.getNumResults() != 1)
    return model.embed.emitOpError("expected 1 argument and 1 result, got ")
           << embed.getNumInputs() << " and " << embed.getNumResults();
  FunctionType loss = model.loss.getFunctionType();
  if (loss.getNumInputs() != 2 || loss.getNumResults() != 2)
    return model.loss.emitOpError("expected 2 arguments and 2 results, got ")
           << loss.getNumInputs() << " and " << loss.getNumResults();
  if (failed(checkActivation(model.embed, embed.getResult(0), activation)) ||
      failed(checkActivation(model.loss, loss.getInput(0), activation)))
    return failure();
  for (Type type : loss.getResults())
    if (!isStaticFloat(type) || cast<RankedTensorType>(type).getRank() != 0)
      return model.loss.emitOpError("expected the sum and the weight to be "
                                    "floating-point scalars, got ")
             << type;
  return model;
}

SmallVector<LayerOp> Model::kinds() const {
  return llvm::to_vector(const_cast<StackOp &>(stack).getOps<LayerOp>());
}

LayerOp Model::kindOf(int64_t layer) const {
  ArrayAttr pattern = const_cast<StackOp &>(stack).getPattern();
  auto kind = cast<FlatSymbolRefAttr>(pattern[layer % pattern.size()]);
  return cast<LayerOp>(SymbolTable::lookupSymbolIn(
      const_cast<StackOp &>(stack).getOperation(), kind.getAttr()));
}

SmallVector<ParamOp> Model::globalParams() const {
  return llvm::to_vector(const_cast<ModuleOp &>(module).getOps<ParamOp>());
}

func::FuncOp Model::function(StringRef name) const {
  return const_cast<ModuleOp &>(module).lookupSymbol<func::FuncOp>(name);
}

func::FuncOp Model::function(LayerOp kind, StringRef name) {
  return llvm::dyn_cast_or_null<func::FuncOp>(
      SymbolTable::lookupSymbolIn(kind, name));
}

SmallVector<ParamOp> Model::params(LayerOp kind) {
  return llvm::to_vector(kind.getOps<ParamOp>());
}

SmallVector<ParamOp> Model::usedParams(func::FuncOp function) {
  llvm::SmallSetVector<Operation *, 16> used;
  function.walk([&](Operation *op) {
    StringAttr name;
    if (auto read = dyn_cast<ReadOp>(op))
      name = read.getParamAttr().getAttr();
    else if (auto accumulate = dyn_cast<AccumulateOp>(op))
      name = accumulate.getParamAttr().getAttr();
    if (name)
      if (ParamOp param = lookupParam(op, name))
        used.insert(param);
  });
  auto params = llvm::map_to_vector(
      used, [](Operation *op) { return cast<ParamOp>(op); });
  llvm::sort(params, [](ParamOp a, ParamOp b) {
    return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b);
  });
  return params;
}

FailureOr<SmallVector<AuxiliaryLossInfo>> Model::auxiliaryLosses() const {
  int64_t layers = const_cast<StackOp &>(stack).getLayers();
  int64_t kindCount = const_cast<StackOp &>(stack).getPattern().size();
  SmallVector<AuxiliaryLossInfo> losses;
  SmallVector<AuxiliaryLossOp> firstUses;
  auto add = [&](AuxiliaryLossOp op, double weight) -> WalkResult {
    double coefficient = op.getCoefficient().convertToDouble();
    auto *found = llvm::find_if(losses, [&](AuxiliaryLossInfo &loss) {
      return loss.name == op.getName();
    });
    if (found == losses.end()) {
      losses.push_back({op.getName().str(), coefficient, weight});
      firstUses.push_back(op);
      return WalkResult::advance();
    }
    found->weight += weight;
    if (found->coefficient == coefficient)
      return WalkResult::advance();
    auto diagnostic = op.emitOpError("expected one coefficient of '")
                      << op.getName() << "', got " << found->coefficient
                      << " and " << coefficient;
    diagnostic.attachNote(firstUses[found - losses.begin()].getLoc())
        << "the other one";
    return diagnostic;
  };
  for (int64_t i = 0; i < std::min(kindCount, layers); ++i) {
    func::FuncOp forward = function(kindOf(i), function::forward);
    // Layers i, i + kindCount, ... are this one.
    double times = double(llvm::divideCeil(layers - i, kindCount));
    WalkResult result = forward.walk([&](AuxiliaryLossOp op) {
      return add(op, times * op.getWeight().convertToDouble());
    });
    if (result.wasInterrupted())
      return failure();
  }
  return losses;
}

RankedTensorType Model::activationType() const {
  func::FuncOp forward = function(kindOf(0), function::forward);
  return cast<RankedTensorType>(forward.getArgumentTypes().front());
}

std::string Model::checkpointName(ParamOp param) const {
  if (!isa<LayerOp>(param->getParentOp()))
    return param.getSymName().str();
  return (const_cast<StackOp &>(stack).getSymName() + ".{layer}." +
          param.getSymName())
      .str();
}

/// Elements of the whole tensor, of which functions may see a part.
static int64_t elementsOf(ParamOp param) {
  if (PlacementAttr placement = param.getPlacementAttr())
    return llvm::product_of(placement.getWhole());
  return param.getTensorType().getNumElements();
}

int64_t Model::parameterCount() const {
  int64_t count = 0;
  for (ParamOp param : globalParams())
    count += elementsOf(param);
  for (int64_t layer = 0, end = const_cast<StackOp &>(stack).getLayers();
       layer < end; ++layer)
    for (ParamOp param : params(kindOf(layer)))
      count += elementsOf(param);
  return count;
}
