// SPDX-License-Identifier: Apache-2.0
//
// A model as passes see it.
#include "ir/rota/model/Model.h"
#include "ir/rota/model/TrainingWork.h"
#include "runtime/text/Text.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::rota;

ParamOp mlir::rota::lookupParam(Operation *user, StringAttr name) {
  for (Operation *table = SymbolTable::getNearestSymbolTable(user); table;
       table = table->getParentOp()
                   ? SymbolTable::getNearestSymbolTable(table->getParentOp())
                   : nullptr)
    if (auto param = llvm::dyn_cast_or_null<ParamOp>(
            SymbolTable::lookupSymbolIn(table, name)))
      return param;
  return {};
}

FailureOr<Type> mlir::rota::readType(ParamOp param) {
  Type type;
  auto result = param->getParentOp()->walk([&](ReadOp read) {
    if (lookupParam(read, read.getParamAttr().getAttr()) != param)
      return WalkResult::advance();
    Type element = cast<RankedTensorType>(read.getType()).getElementType();
    if (type && type != element) {
      auto error = read.emitOpError("expected parameter '")
                   << param.getSymName() << "' to be read in one type, got "
                   << type << " and " << element;
      return WalkResult::interrupt();
    }
    type = element;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (!type)
    return param.emitOpError("expected a function that reads parameter '")
           << param.getSymName() << "'";
  return type;
}

void mlir::rota::setKinds(StackOp stack, ArrayRef<Attribute> kinds) {
  size_t period = 1;
  while (kinds.drop_front(period) != kinds.drop_back(period))
    ++period;
  stack.setPatternAttr(
      ArrayAttr::get(stack.getContext(), kinds.take_front(period)));
}

static LogicalResult checkActivation(const FunctionPort &port,
                                     Type activation) {
  if (port.type() == activation)
    return success();
  return func::FuncOp(port.function)
             .emitOpError("expected an activation of type ")
         << activation << " as in the layers, got " << port.type();
}

static bool isStaticFloat(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         isa<FloatType>(tensor.getElementType());
}

/// The loss takes the activation, or an equal part of its sequence.
static LogicalResult checkLossActivation(const FunctionPort &port,
                                         RankedTensorType activation) {
  auto type = dyn_cast<RankedTensorType>(port.type());
  if (!type || type.getRank() != activation.getRank() || type.getRank() < 2 ||
      !type.hasStaticShape() || type.getDimSize(1) < 1 ||
      activation.getDimSize(1) % type.getDimSize(1) != 0)
    return checkActivation(port, activation);
  SmallVector<int64_t> shape(activation.getShape());
  shape[1] = type.getDimSize(1);
  return checkActivation(port, activation.clone(shape));
}

/// The loss returns scalars, of which terms have names of their own. The main
/// loss is reported as 'main'.
static LogicalResult checkLossResults(const FunctionRoles &loss) {
  llvm::StringSet<> names({"main"});
  for (Role role : {Role::LossSum, Role::LossWeight, Role::LossTerm})
    for (const FunctionPort &port : loss.results(role)) {
      func::FuncOp function = port.function;
      if (!isStaticFloat(port.type()) ||
          cast<RankedTensorType>(port.type()).getRank() != 0)
        return function.emitOpError("expected the sum, the weight and terms to "
                                    "be floating-point scalars, got ")
               << port.type();
      if (LossTermAttr term = port.lossTerm();
          term && !names.insert(term.getName()).second)
        return function.emitOpError("expected a name that no other part of the "
                                    "loss has, got '")
               << term.getName() << "'";
    }
  return success();
}

/// The shape of the tensor that a parameter is joined in.
static SmallVector<int64_t> joinedShape(ParamOp param) {
  SmallVector<int64_t> shape(param.getWholeShape());
  shape[param.getJoinedAttr().getDimension()] = param.getJoinedAttr().getSize();
  return shape;
}

/// Whether one tensor may have both parameters.
static bool canJoin(ParamOp a, ParamOp b) {
  return a.getJoinedAttr() && b.getJoinedAttr() &&
         a.getJoinedAttr().getDimension() == b.getJoinedAttr().getDimension() &&
         joinedShape(a) == joinedShape(b);
}

/// The end of the parameter in the tensor that it is joined in.
static int64_t joinedEnd(ParamOp param) {
  JoinedAttr joined = param.getJoinedAttr();
  return joined.getBegin() + param.getWholeShape()[joined.getDimension()];
}

/// The parameters of a tensor have each element of it once, in order.
static LogicalResult checkJoined(ArrayRef<ParamOp> params) {
  llvm::MapVector<StringRef, ParamOp> lasts; // by tensor
  for (ParamOp param : params) {
    ParamOp &last = lasts[param.getFileName()];
    if (last && !canJoin(last, param))
      return param.emitOpError("expected all parameters of '")
             << param.getFileName()
             << "' to be joined along one dimension of one shape";
    int64_t begin = last ? joinedEnd(last) : 0;
    if (JoinedAttr joined = param.getJoinedAttr();
        joined && joined.getBegin() != begin)
      return param.emitOpError("expected the elements of '")
             << joined.getTensor() << "' from " << begin << " on, got "
             << joined.getBegin();
    last = param;
  }
  for (auto &[name, last] : lasts)
    if (last.getJoinedAttr() &&
        joinedEnd(last) != last.getJoinedAttr().getSize())
      return last.emitOpError("expected parameters of all ")
             << last.getJoinedAttr().getSize() << " elements of '" << name
             << "', got " << joinedEnd(last);
  return success();
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
  model.embed = model.function(ModelPart::Embed, FunctionKind::Forward);
  model.loss = model.function(ModelPart::Loss, FunctionKind::Forward);
  if (!model.embed || !model.loss)
    return module.emitError(
               "expected functions 'embed' and 'loss' in the model, '")
           << (model.embed ? "loss" : "embed") << "' is missing";
  RankedTensorType activation = model.activationType();
  if (!isStaticFloat(activation))
    return model.stack.emitOpError("expected an activation of static shape and "
                                   "floating-point elements, got ")
           << activation;
  if (failed(checkJoined(model.globalParams())))
    return failure();
  for (LayerOp kind : model.kinds())
    if (failed(checkJoined(params(kind))))
      return failure();
  if (failed(verifyCountsAsBuilt(model.embed)) ||
      failed(verifyCountsAsBuilt(model.loss)))
    return failure();
  FunctionRoles embed(model.embed), loss(model.loss);
  if (failed(
          checkActivation(embed.result(Role::OutputActivation), activation)) ||
      failed(checkLossActivation(loss.argument(Role::InputActivation),
                                 activation)))
    return failure();
  if (failed(checkLossResults(loss)))
    return failure();
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

func::FuncOp Model::function(ModelPart part, FunctionKind kind) const {
  return functionIn(module, part, kind);
}

func::FuncOp Model::function(LayerOp layer, FunctionKind kind) {
  return functionIn(layer, ModelPart::Layer, kind);
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
                      << op.getName() << "', got "
                      << ::rota::numberText(found->coefficient) << " and "
                      << ::rota::numberText(coefficient);
    diagnostic.attachNote(firstUses[found - losses.begin()].getLoc())
        << "the other one";
    return diagnostic;
  };
  for (int64_t i = 0; i < std::min(kindCount, layers); ++i) {
    func::FuncOp forward = function(kindOf(i), FunctionKind::Forward);
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
  FunctionRoles forward(function(kindOf(0), FunctionKind::Forward));
  return cast<RankedTensorType>(forward.argument(Role::InputActivation).type());
}

RankedTensorType Model::activationType(ModelPart part) const {
  if (part != ModelPart::Loss)
    return activationType();
  return cast<RankedTensorType>(
      FunctionRoles(loss).argument(Role::InputActivation).type());
}

int64_t Model::lossCalls() const {
  RankedTensorType all = activationType();
  RankedTensorType own = activationType(ModelPart::Loss);
  return own == all ? 1 : all.getDimSize(1) / own.getDimSize(1);
}

/// The name of a parameter or tensor in the scope of `param`.
static std::string nameInScope(ParamOp param, StringRef name) {
  auto stack = param->getParentOfType<StackOp>();
  if (!stack)
    return name.str();
  return (stack.getSymName() + ".{layer}." + name).str();
}

std::string Model::parameterName(ParamOp param) {
  return nameInScope(param, param.getSymName());
}

std::string Model::checkpointName(ParamOp param) {
  return nameInScope(param, param.getFileName());
}

/// Elements of the whole tensor, of which functions may see a part.
static int64_t elementsOf(ParamOp param) {
  return llvm::product_of(param.getWholeShape());
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

double Model::flopsOf(func::FuncOp function) {
  double flops = 0;
  function.walk([&](CostOpInterface op) { flops += op.getCost().flops; });
  return flops;
}

/// Operations of a function's forward and backward.
static double trainingFlopsOf(func::FuncOp function) {
  return trainingWork(function,
                      [](Operation *op) {
                        auto cost = dyn_cast<CostOpInterface>(op);
                        return cost ? cost.getCost().flops : 0.0;
                      })
      .all();
}

/// The operations of the forward functions and of their backwards, by the
/// number of tokens.
template <typename FlopsOf>
static double perToken(const Model &model, const FlopsOf &flopsOf) {
  double flops =
      flopsOf(model.embed) + double(model.lossCalls()) * flopsOf(model.loss);
  for (int64_t i = 0, n = const_cast<StackOp &>(model.stack).getLayers(); i < n;
       ++i)
    flops += flopsOf(model.function(model.kindOf(i), FunctionKind::Forward));
  auto tokens = cast<RankedTensorType>(
      FunctionRoles(model.embed).argument(Role::Tokens).type());
  int64_t count = llvm::product_of(tokens.getShape().take_front(2));
  return flops / static_cast<double>(count);
}

double Model::flopsPerToken() const { return perToken(*this, trainingFlopsOf); }

double Model::fullFlopsPerToken() const {
  return perToken(*this, [](func::FuncOp function) {
    double flops = trainingFlopsOf(function);
    function.walk([&](AttentionOp op) {
      auto sequence = double(op.getMask().sequence);
      flops += 3.0 * op.getCost().flops *
               (sequence * sequence / op.getMask().pairs() - 1);
    });
    return flops;
  });
}
