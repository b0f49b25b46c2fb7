// SPDX-License-Identifier: Apache-2.0
//
// A whole partitioned model on all ranks of its mesh.
#include "test/interpreter/MeshModelRun.h"

using namespace rota::interpreter;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::SmallVector;
using llvm::success;
using mlir::func::FuncOp;
using mlir::rota::Model;
using mlir::rota::ParamOp;
using mlir::rota::ShardingAttr;
namespace function = mlir::rota::function;

using ShardingName = mlir::rota::RotaDialect::ShardingAttrHelper;

namespace {

/// A value between functions: what the ranks hold, and how it is divided.
struct Value {
  Parts parts;
  ShardingAttr sharding;
};
using Values = SmallVector<Value>;

/// A parameter, and its gradient in one function or layer, on each rank.
struct Binding {
  ParamOp param;
  std::string name; // of the parameter in checkpoints
  Parts value, gradient;
};

/// A function's parameters, by their symbols on each rank.
struct Scope {
  std::vector<Binding> bindings;
  std::vector<Environment> environments;
};

class MeshModel {
public:
  MeshModel(const Model &model, const Tensors &parameters,
            const Options &options);
  llvm::LogicalResult run(const Microbatch &microbatch);
  FailureOr<Step> takeStep();

private:
  Scope bind(llvm::ArrayRef<ParamOp> params, int64_t layer,
             const Tensors &parameters);
  FailureOr<Values> call(Scope &scope, FuncOp function, const Values &arguments,
                         llvm::StringRef name);
  FailureOr<Value> forwardLayer(int64_t layer, const Value &activation,
                                Values &saved);
  FailureOr<Value> backwardLayer(int64_t layer, Values saved,
                                 const Value &cotangent);
  FailureOr<Value> backwardOfLoss(const Value &activation, const Value &target);
  llvm::LogicalResult addLoss(const Values &results);
  Value cutArgument(FuncOp function, unsigned argument, const Tensor &whole);

  const Model &model;
  Options options;
  mlir::rota::MeshAttr mesh;
  Step step;
  Scope embed, loss;
  std::vector<Scope> layers;
};

} // namespace

MeshModel::MeshModel(const Model &model, const Tensors &parameters,
                     const Options &options)
    : model(model), options(options), mesh(mlir::rota::meshOf(model.module)) {
  embed = bind(model.globalParams(), -1, parameters);
  loss = bind(model.globalParams(), -1, parameters);
  int64_t count = mlir::rota::StackOp(model.stack).getLayers();
  for (int64_t layer = 0; layer < count; ++layer)
    layers.push_back(
        bind(Model::params(model.kindOf(layer)), layer, parameters));
}

/// How functions see a parameter, and over which axes their gradient is a sum.
static ShardingAttr computeSharding(ParamOp param) {
  if (auto placement = param.getPlacement())
    return placement->getCompute();
  return mlir::rota::replicatedSharding(param.getContext(),
                                        param.getTensorType().getRank());
}

/// The same without what it says of the gradient.
static ShardingAttr valueSharding(ParamOp param) {
  ShardingAttr compute = computeSharding(param);
  return ShardingAttr::get(param.getContext(), compute.getDimensions(), {}, {});
}

Scope MeshModel::bind(llvm::ArrayRef<ParamOp> params, int64_t layer,
                      const Tensors &parameters) {
  Scope scope;
  for (ParamOp param : params) {
    Binding &binding = scope.bindings.emplace_back();
    binding.param = param;
    binding.name = checkpointName(model, param, layer);
    binding.value =
        cut(parameters.at(binding.name), valueSharding(param), mesh);
    for (const Tensor &part : binding.value)
      binding.gradient.emplace_back(part.shape);
  }
  scope.environments.resize(mesh.getRanks());
  for (auto [rank, environment] : llvm::enumerate(scope.environments))
    for (Binding &binding : scope.bindings) {
      std::string symbol = binding.param.getSymName().str();
      environment.parameters[symbol] = &binding.value[rank];
      environment.gradients[symbol] = &binding.gradient[rank];
    }
  return scope;
}

/// True when both put the same elements on every rank, and sums over the same
/// axes.
static bool isSame(ShardingAttr a, ShardingAttr b, mlir::rota::MeshAttr mesh) {
  if (a.getUnreduced() != b.getUnreduced())
    return false;
  for (auto [left, right] :
       llvm::zip_equal(a.getDimensions(), b.getDimensions())) {
    AxisGroup leftGroup(mesh, left.getAxes()),
        rightGroup(mesh, right.getAxes());
    if (leftGroup.size() != rightGroup.size())
      return false;
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
      if (leftGroup.positionOf(rank) != rightGroup.positionOf(rank))
        return false;
  }
  return true;
}

/// The sharding of an attribute; of what has none, that each rank has it all.
static ShardingAttr orWhole(ShardingAttr sharding, mlir::Type type) {
  auto rank = llvm::cast<mlir::RankedTensorType>(type).getRank();
  return sharding ? sharding
                  : mlir::rota::replicatedSharding(type.getContext(), rank);
}

static ShardingAttr argumentSharding(FuncOp function, unsigned index) {
  return orWhole(function.getArgAttrOfType<ShardingAttr>(
                     index, ShardingName::getNameStr()),
                 function.getArgumentTypes()[index]);
}

static ShardingAttr resultSharding(FuncOp function, unsigned index) {
  return orWhole(function.getResultAttrOfType<ShardingAttr>(
                     index, ShardingName::getNameStr()),
                 function.getResultTypes()[index]);
}

FailureOr<Values> MeshModel::call(Scope &scope, FuncOp function,
                                  const Values &arguments,
                                  llvm::StringRef name) {
  if (!function)
    return mlir::ModuleOp(model.module).emitError("expected a function '")
           << name << "'";
  if (function.getNumArguments() != arguments.size())
    return function.emitError("expected ")
           << arguments.size() << " arguments, got "
           << function.getNumArguments();
  SmallVector<Parts> parts;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    ShardingAttr taken = argumentSharding(function, index);
    if (!isSame(argument.sharding, taken, mesh))
      return function.emitError("expected argument ")
             << index << " divided as it was made, " << argument.sharding
             << ", got " << taken;
    parts.push_back(argument.parts);
  }
  auto results = runOnMesh(function, parts, scope.environments, options);
  if (failed(results))
    return failure();
  Values values;
  for (auto [index, result] : llvm::enumerate(*results))
    values.push_back({std::move(result), resultSharding(function, index)});
  return values;
}

Value MeshModel::cutArgument(FuncOp function, unsigned argument,
                             const Tensor &whole) {
  ShardingAttr sharding = argumentSharding(function, argument);
  return {cut(whole, sharding, mesh), sharding};
}

/// All values of `values` after the first `count`, after those of `first`.
static Values append(Values first, const Values &values, unsigned count) {
  first.append(values.begin() + count, values.end());
  return first;
}

llvm::LogicalResult MeshModel::addLoss(const Values &results) {
  double *sums[] = {&step.sum, &step.weight};
  for (auto [sum, result] : llvm::zip(sums, results)) {
    auto whole = join(mlir::ModuleOp(model.module).getLoc(), result.parts, {},
                      result.sharding, mesh);
    if (failed(whole))
      return failure();
    *sum += (*whole)[0];
  }
  return success();
}

FailureOr<Value> MeshModel::forwardLayer(int64_t layer, const Value &activation,
                                         Values &saved) {
  auto results = call(layers[layer],
                      Model::function(model.kindOf(layer), function::forward),
                      {activation}, function::forward);
  if (failed(results))
    return failure();
  saved = append({activation}, *results, 1);
  return results->front();
}

FailureOr<Value> MeshModel::backwardOfLoss(const Value &activation,
                                           const Value &target) {
  FuncOp input = model.function(function::lossBackwardInput);
  auto results =
      call(loss, input ? input : model.function(function::lossBackward),
           {activation, target}, function::lossBackward);
  if (failed(results) || failed(addLoss(*results)))
    return failure();
  if (input && failed(call(loss, model.function(function::lossBackwardWeight),
                           append({activation, target}, *results, 3),
                           function::lossBackwardWeight)))
    return failure();
  return (*results)[2];
}

FailureOr<Value> MeshModel::backwardLayer(int64_t layer, Values saved,
                                          const Value &cotangent) {
  auto kind = model.kindOf(layer);
  FuncOp input = Model::function(kind, function::backwardInput);
  auto results = call(layers[layer],
                      input ? input : Model::function(kind, function::backward),
                      append(saved, {cotangent}, 0), function::backward);
  if (failed(results))
    return failure();
  if (input &&
      failed(call(layers[layer],
                  Model::function(kind, function::backwardWeight),
                  append(saved, *results, 1), function::backwardWeight)))
    return failure();
  return results->front();
}

llvm::LogicalResult MeshModel::run(const Microbatch &microbatch) {
  FuncOp embedBackward = model.function(function::embedBackward);
  Value input = cutArgument(model.embed, 0, microbatch.input);
  Value target = cutArgument(model.loss, 1, microbatch.target);
  auto embedded = call(embed, model.embed, {input}, function::embed);
  if (failed(embedded))
    return failure();
  FailureOr<Value> activation = embedded->front();
  std::vector<Values> saved(layers.size());
  for (size_t layer = 0; layer < layers.size() && succeeded(activation);
       ++layer)
    activation = forwardLayer(layer, *activation, saved[layer]);
  if (failed(activation))
    return failure();
  auto cotangent = backwardOfLoss(*activation, target);
  for (int64_t layer = int64_t(layers.size()) - 1;
       layer >= 0 && succeeded(cotangent); --layer)
    cotangent = backwardLayer(layer, saved[layer], *cotangent);
  if (failed(cotangent))
    return failure();
  return call(embed, embedBackward, {input, *cotangent},
              function::embedBackward);
}

FailureOr<Step> MeshModel::takeStep() {
  auto add = [&](const Scope &scope) -> llvm::LogicalResult {
    for (const Binding &binding : scope.bindings) {
      ParamOp param = binding.param;
      auto placement = param.getPlacement();
      auto whole = join(param.getLoc(), binding.gradient,
                        placement ? placement->getWhole()
                                  : param.getTensorType().getShape(),
                        computeSharding(param), mesh);
      if (failed(whole))
        return failure();
      auto [it, isNew] = step.gradients.try_emplace(binding.name, *whole);
      if (!isNew)
        it->second += *whole;
    }
    return success();
  };
  if (failed(add(embed)) || failed(add(loss)))
    return failure();
  for (const Scope &layer : layers)
    if (failed(add(layer)))
      return failure();
  for (auto &[name, gradient] : step.gradients)
    gradient *= 1 / step.weight;
  return std::move(step);
}

FailureOr<Step> rota::interpreter::differentiateOnMesh(
    const Model &model, const Tensors &parameters,
    llvm::ArrayRef<Microbatch> microbatches, const Options &options) {
  MeshModel run(model, parameters, options);
  for (const Microbatch &microbatch : microbatches)
    if (failed(run.run(microbatch)))
      return failure();
  return run.takeStep();
}
