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
using mlir::rota::FunctionKind;
using mlir::rota::FunctionPort;
using mlir::rota::FunctionRoles;
using mlir::rota::Model;
using mlir::rota::ModelPart;
using mlir::rota::ParamOp;
using mlir::rota::Role;
using mlir::rota::ShardingAttr;

namespace {

/// A value between functions: what the ranks hold, and how it is divided.
struct Value {
  Parts parts;
  ShardingAttr sharding;
};
using Values = mlir::rota::RoleValues<Value>;

/// A parameter, and its gradient in one function or layer, on each rank.
struct Binding {
  ParamOp param;
  std::string name; // the parameter's name in checkpoints
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
  llvm::LogicalResult call(Scope &scope, mlir::Operation *parent,
                           ModelPart part, FunctionKind kind, Values &values);
  llvm::LogicalResult runBackward(Scope &scope, mlir::Operation *parent,
                                  ModelPart part, Values &values);
  llvm::LogicalResult addLoss(const Values &values);
  Value cutArgument(FuncOp function, Role role, const Tensor &whole);
  Parts cutSequences(const Tensor &tokens);

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

/// The compute sharding of a parameter, with the unreduced axes of its
/// gradient.
static ShardingAttr computeSharding(ParamOp param) {
  if (auto placement = param.getPlacement())
    return placement->getCompute();
  return mlir::rota::replicatedSharding(param.getContext(),
                                        param.getTensorType().getRank());
}

/// The compute sharding of a parameter, without the axes of its gradient.
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
    binding.name = parameterName(model, param, layer);
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

/// The sharding of an argument or result; without one, each rank has all of it.
static ShardingAttr shardingOf(const FunctionPort &port) {
  if (ShardingAttr sharding = port.sharding())
    return sharding;
  mlir::Type type = port.type();
  return mlir::rota::replicatedSharding(
      type.getContext(), llvm::cast<mlir::RankedTensorType>(type).getRank());
}

/// Runs a function of `parent` on the values of its arguments' roles, and adds
/// those of its results.
llvm::LogicalResult MeshModel::call(Scope &scope, mlir::Operation *parent,
                                    ModelPart part, FunctionKind kind,
                                    Values &values) {
  const auto &row = mlir::rota::signatureOf(part, kind);
  FuncOp function = mlir::rota::functionIn(parent, part, kind);
  if (!function)
    return parent->emitError("expected a function '") << row.name << "'";
  SmallVector<Value> arguments = values.inOrder(row.arguments);
  if (function.getNumArguments() != arguments.size())
    return function.emitError("expected ")
           << arguments.size() << " arguments, got "
           << function.getNumArguments();
  SmallVector<Parts> parts;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    ShardingAttr taken =
        shardingOf({function, /*isResult=*/false, unsigned(index)});
    if (!isSame(argument.sharding, taken, mesh))
      return function.emitError("expected argument ")
             << index << " divided as it was made, " << argument.sharding
             << ", got " << taken;
    parts.push_back(argument.parts);
  }
  auto results = runOnMesh(function, parts, scope.environments, options);
  if (failed(results))
    return failure();
  SmallVector<Value> made;
  for (auto [index, result] : llvm::enumerate(*results))
    made.push_back({std::move(result), shardingOf({function, /*isResult=*/true,
                                                   unsigned(index)})});
  values.assign(FunctionRoles(function).results(), made);
  return success();
}

/// The backward of a part of the model, whole or in two halves.
llvm::LogicalResult MeshModel::runBackward(Scope &scope,
                                           mlir::Operation *parent,
                                           ModelPart part, Values &values) {
  if (!mlir::rota::functionIn(parent, part, FunctionKind::BackwardInput))
    return call(scope, parent, part, FunctionKind::Backward, values);
  return llvm::success(succeeded(call(scope, parent, part,
                                      FunctionKind::BackwardInput, values)) &&
                       succeeded(call(scope, parent, part,
                                      FunctionKind::BackwardWeight, values)));
}

/// The parts of `whole`, which is an argument of `function`.
Value MeshModel::cutArgument(FuncOp function, Role role, const Tensor &whole) {
  ShardingAttr sharding = shardingOf(FunctionRoles(function).argument(role));
  return {cut(whole, sharding, mesh), sharding};
}

/// Each rank's sequences of the microbatch's tokens, whole.
Parts MeshModel::cutSequences(const Tensor &tokens) {
  ShardingAttr sharding =
      shardingOf(FunctionRoles(model.embed).argument(Role::Tokens));
  SmallVector<mlir::rota::DimensionShardingAttr> dimensions(
      sharding.getDimensions());
  for (auto &dimension : llvm::drop_begin(dimensions))
    dimension = mlir::rota::DimensionShardingAttr::get(sharding.getContext(),
                                                       {}, /*open=*/false);
  return cut(tokens,
             ShardingAttr::get(sharding.getContext(), dimensions, {}, {}),
             mesh);
}

llvm::LogicalResult MeshModel::addLoss(const Values &values) {
  auto add = [&](double &sum, Role role) -> llvm::LogicalResult {
    const Value &value = values.one(role);
    auto whole = join(mlir::ModuleOp(model.module).getLoc(), value.parts, {},
                      value.sharding, mesh);
    if (failed(whole))
      return failure();
    sum += (*whole)[0];
    return success();
  };
  return llvm::success(succeeded(add(step.sum, Role::LossSum)) &&
                       succeeded(add(step.weight, Role::LossWeight)));
}

llvm::LogicalResult MeshModel::run(const Microbatch &microbatch) {
  mlir::ModuleOp module = model.module;
  Parts sequences = cutSequences(microbatch.input);
  auto setTokens = [&](Scope &scope) {
    for (auto [environment, tokens] : llvm::zip(scope.environments, sequences))
      environment.tokens = &tokens;
  };
  setTokens(embed);
  setTokens(loss);
  for (Scope &layer : layers)
    setTokens(layer);
  Values ofEmbed, ofLoss;
  ofEmbed.set(Role::Tokens,
              cutArgument(model.embed, Role::Tokens, microbatch.input));
  if (failed(call(embed, module, ModelPart::Embed, FunctionKind::Forward,
                  ofEmbed)))
    return failure();
  Value activation = ofEmbed.one(Role::OutputActivation);
  std::vector<Values> saved(layers.size());
  for (auto [layer, values] : llvm::enumerate(saved)) {
    values.set(Role::InputActivation, activation);
    if (failed(call(layers[layer], model.kindOf(layer), ModelPart::Layer,
                    FunctionKind::Forward, values)))
      return failure();
    activation = values.one(Role::OutputActivation);
  }
  ofLoss.set(Role::InputActivation, activation);
  ofLoss.set(Role::Targets,
             cutArgument(model.loss, Role::Targets, microbatch.target));
  if (failed(runBackward(loss, module, ModelPart::Loss, ofLoss)) ||
      failed(addLoss(ofLoss)))
    return failure();
  Value cotangent = ofLoss.one(Role::InputCotangent);
  for (int64_t layer = int64_t(layers.size()) - 1; layer >= 0; --layer) {
    saved[layer].set(Role::OutputCotangent, cotangent);
    if (failed(runBackward(layers[layer], model.kindOf(layer), ModelPart::Layer,
                           saved[layer])))
      return failure();
    cotangent = saved[layer].one(Role::InputCotangent);
  }
  ofEmbed.set(Role::OutputCotangent, cotangent);
  return call(embed, module, ModelPart::Embed, FunctionKind::Backward, ofEmbed);
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
