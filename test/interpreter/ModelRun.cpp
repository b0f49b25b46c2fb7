// SPDX-License-Identifier: Apache-2.0
//
// A whole model, run sequentially.
#include "test/interpreter/ModelRun.h"

using namespace rota::interpreter;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::success;
using mlir::rota::LayerOp;
using mlir::rota::Model;
using mlir::rota::ParamOp;
namespace function = mlir::rota::function;

using Values = ModelInstance::Values;

std::string rota::interpreter::checkpointName(const Model &model, ParamOp param,
                                              int64_t layer) {
  std::string name = model.checkpointName(param);
  llvm::StringRef hole = "{layer}";
  if (size_t at = name.find(hole); at != std::string::npos)
    name.replace(at, hole.size(), std::to_string(layer));
  return name;
}

static int64_t layerCount(const Model &model) {
  return mlir::rota::StackOp(model.stack).getLayers();
}

std::map<std::string, llvm::SmallVector<int64_t>>
rota::interpreter::parameterShapes(const Model &model) {
  std::map<std::string, llvm::SmallVector<int64_t>> shapes;
  auto add = [&](ParamOp param, int64_t layer) {
    shapes[checkpointName(model, param, layer)] =
        llvm::SmallVector<int64_t>(param.getTensorType().getShape());
  };
  for (ParamOp param : model.globalParams())
    add(param, -1);
  for (int64_t layer = 0; layer < layerCount(model); ++layer)
    for (ParamOp param : Model::params(model.kindOf(layer)))
      add(param, layer);
  return shapes;
}

/// All results of a function after the first `count`.
static Values after(const Values &results, unsigned count) {
  return Values(llvm::drop_begin(results, count));
}

static Values concatenate(Values first, const Values &second) {
  first.append(second);
  return first;
}

ModelInstance::ModelInstance(const Model &model, const Tensors &parameters,
                             const Options &options)
    : model(model), options(options) {
  lossEnvironment.named = &named;
  for (ParamOp param : model.globalParams()) {
    bind(embedEnvironment, step.gradients, param, -1, parameters);
    bind(lossEnvironment, lossGradients, param, -1, parameters);
  }
  if (auto losses = model.auxiliaryLosses(); succeeded(losses))
    auxiliaryLosses = *losses;
  auxiliarySums.resize(layerCount(model));
  for (int64_t layer = 0; layer < layerCount(model); ++layer) {
    Environment &environment = layerEnvironments.emplace_back();
    environment.auxiliarySums = &auxiliarySums[layer];
    environment.auxiliaryCotangents = &auxiliaryCotangents;
    for (ParamOp param : Model::params(model.kindOf(layer)))
      bind(environment, step.gradients, param, layer, parameters);
  }
}

void ModelInstance::bind(Environment &environment, Tensors &gradients,
                         ParamOp param, int64_t layer,
                         const Tensors &parameters) {
  std::string name = checkpointName(model, param, layer);
  std::string symbol = param.getSymName().str();
  if (auto it = parameters.find(name); it != parameters.end())
    environment.parameters[symbol] = &it->second;
  gradients[name] = Tensor(param.getTensorType().getShape());
  environment.gradients[symbol] = &gradients[name];
}

FailureOr<Values> ModelInstance::call(Environment &environment,
                                      llvm::StringRef name,
                                      const Values &arguments) {
  auto function = model.function(name);
  if (!function)
    return mlir::ModuleOp(model.module).emitError("expected a function '")
           << name << "'";
  return runFunction(function, arguments, environment, options);
}

FailureOr<Values> ModelInstance::call(int64_t layer, llvm::StringRef name,
                                      const Values &arguments) {
  LayerOp kind = model.kindOf(layer);
  auto function = Model::function(kind, name);
  if (!function)
    return kind.emitError("expected a function '") << name << "'";
  return runFunction(function, arguments, layerEnvironments[layer], options);
}

/// Adds a loss function's first two results, and keeps its logits.
void ModelInstance::addLoss(const Values &results) {
  step.sum += results[0][0];
  step.weight += results[1][0];
  ++microbatchCount;
  if (auto it = named.find("logits"); it != named.end())
    step.logits.push_back(it->second);
}

llvm::LogicalResult
ModelInstance::beginStep(llvm::ArrayRef<Microbatch> microbatches) {
  if (auxiliaryLosses.empty())
    return success();
  double weight = 0;
  for (const Microbatch &microbatch : microbatches) {
    auto results =
        call(lossEnvironment, function::lossWeight, {microbatch.target});
    if (failed(results))
      return failure();
    weight += results->front()[0];
  }
  for (const auto &loss : auxiliaryLosses)
    auxiliaryCotangents[loss.name] =
        loss.coefficient * weight / (loss.weight * double(microbatches.size()));
  return success();
}

bool ModelInstance::isLossSplit() const {
  return bool(model.function(function::lossBackwardInput));
}

bool ModelInstance::isSplit(int64_t layer) const {
  return bool(Model::function(model.kindOf(layer), function::backwardInput));
}

FailureOr<Tensor> ModelInstance::embed(const Tensor &input) {
  auto results = call(embedEnvironment, function::embed, {input});
  if (failed(results))
    return failure();
  return results->front();
}

FailureOr<Tensor>
ModelInstance::forward(int64_t layer, const Tensor &activation, Values &saved) {
  auto results = call(layer, function::forward, {activation});
  if (failed(results))
    return failure();
  saved = concatenate({activation}, after(*results, 1));
  return results->front();
}

llvm::LogicalResult ModelInstance::evaluateLoss(const Tensor &activation,
                                                const Tensor &target) {
  auto results = call(lossEnvironment, function::loss, {activation, target});
  if (failed(results))
    return failure();
  addLoss(*results);
  return success();
}

FailureOr<Tensor> ModelInstance::backwardOfLoss(const Tensor &activation,
                                                const Tensor &target,
                                                Values &saved) {
  auto results =
      call(lossEnvironment,
           isLossSplit() ? function::lossBackwardInput : function::lossBackward,
           {activation, target});
  if (failed(results))
    return failure();
  addLoss(*results);
  if (isLossSplit())
    saved = concatenate({activation, target}, after(*results, 3));
  return (*results)[2];
}

FailureOr<Tensor> ModelInstance::backward(int64_t layer, Values &saved,
                                          const Tensor &cotangent) {
  auto results =
      call(layer, isSplit(layer) ? function::backwardInput : function::backward,
           concatenate(saved, {cotangent}));
  if (failed(results))
    return failure();
  saved.append(after(*results, 1));
  return results->front();
}

llvm::LogicalResult ModelInstance::backwardWeightOfLoss(const Values &saved) {
  return call(lossEnvironment, function::lossBackwardWeight, saved);
}

llvm::LogicalResult ModelInstance::backwardWeight(int64_t layer,
                                                  const Values &saved) {
  return call(layer, function::backwardWeight, saved);
}

llvm::LogicalResult ModelInstance::backwardOfEmbed(const Tensor &input,
                                                   const Tensor &cotangent) {
  return call(embedEnvironment, function::embedBackward, {input, cotangent});
}

Step ModelInstance::takeStep() {
  for (const auto &loss : auxiliaryLosses) {
    double sum = 0;
    for (auto &ofLayer : auxiliarySums)
      sum += ofLayer[loss.name];
    step.auxiliary +=
        loss.coefficient * sum / (loss.weight * double(microbatchCount));
  }
  for (auto &[name, gradient] : lossGradients)
    step.gradients[name] += gradient;
  for (auto &[name, gradient] : step.gradients)
    gradient *= 1 / step.weight;
  return std::move(step);
}

static llvm::LogicalResult evaluate(ModelInstance &instance,
                                    const Microbatch &microbatch) {
  auto activation = instance.embed(microbatch.input);
  for (int64_t layer = 0; layer < instance.layers() && succeeded(activation);
       ++layer) {
    Values saved;
    activation = instance.forward(layer, *activation, saved);
  }
  if (failed(activation))
    return failure();
  return instance.evaluateLoss(*activation, microbatch.target);
}

static FailureOr<Tensor> lossBackward(ModelInstance &instance,
                                      const Tensor &activation,
                                      const Tensor &target) {
  Values saved;
  auto cotangent = instance.backwardOfLoss(activation, target, saved);
  if (succeeded(cotangent) && instance.isLossSplit() &&
      failed(instance.backwardWeightOfLoss(saved)))
    return failure();
  return cotangent;
}

static llvm::LogicalResult differentiate(ModelInstance &instance,
                                         const Microbatch &microbatch) {
  std::vector<Values> saved(instance.layers());
  auto activation = instance.embed(microbatch.input);
  for (int64_t layer = 0; layer < instance.layers() && succeeded(activation);
       ++layer)
    activation = instance.forward(layer, *activation, saved[layer]);
  if (failed(activation))
    return failure();
  auto cotangent = lossBackward(instance, *activation, microbatch.target);
  for (int64_t layer = instance.layers() - 1;
       layer >= 0 && succeeded(cotangent); --layer) {
    cotangent = instance.backward(layer, saved[layer], *cotangent);
    if (succeeded(cotangent) && instance.isSplit(layer) &&
        failed(instance.backwardWeight(layer, saved[layer])))
      return failure();
  }
  if (failed(cotangent))
    return failure();
  return instance.backwardOfEmbed(microbatch.input, *cotangent);
}

FailureOr<Step>
rota::interpreter::evaluate(const Model &model, const Tensors &parameters,
                            llvm::ArrayRef<Microbatch> microbatches,
                            const Options &options) {
  ModelInstance instance(model, parameters, options);
  for (const Microbatch &microbatch : microbatches)
    if (failed(::evaluate(instance, microbatch)))
      return failure();
  Step step = instance.takeStep();
  step.gradients.clear();
  return step;
}

FailureOr<Step>
rota::interpreter::differentiate(const Model &model, const Tensors &parameters,
                                 llvm::ArrayRef<Microbatch> microbatches,
                                 const Options &options) {
  ModelInstance instance(model, parameters, options);
  if (failed(instance.beginStep(microbatches)))
    return failure();
  for (const Microbatch &microbatch : microbatches)
    if (failed(::differentiate(instance, microbatch)))
      return failure();
  return instance.takeStep();
}
