// SPDX-License-Identifier: Apache-2.0
//
// A whole model, run sequentially.
#include "test/interpreter/ModelRun.h"

#include "ir/rota/experts/Experts.h"

using namespace rota::interpreter;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::success;
using mlir::rota::FunctionKind;
using mlir::rota::Model;
using mlir::rota::ModelPart;
using mlir::rota::ParamOp;
using mlir::rota::Role;

using Values = ModelInstance::Values;

std::string rota::interpreter::parameterName(const Model &model, ParamOp param,
                                             int64_t layer) {
  std::string name = Model::parameterName(param);
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
    shapes[parameterName(model, param, layer)] =
        llvm::SmallVector<int64_t>(param.getTensorType().getShape());
  };
  for (ParamOp param : model.globalParams())
    add(param, -1);
  for (int64_t layer = 0; layer < layerCount(model); ++layer)
    for (ParamOp param : Model::params(model.kindOf(layer)))
      add(param, layer);
  return shapes;
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
  observedSums.resize(layerCount(model));
  observedMeans.resize(layerCount(model));
  for (int64_t layer = 0; layer < layerCount(model); ++layer) {
    Environment &environment = layerEnvironments.emplace_back();
    environment.auxiliarySums = &auxiliarySums[layer];
    environment.auxiliaryCotangents = &auxiliaryCotangents;
    environment.observedSums = &observedSums[layer];
    environment.observedMeans = &observedMeans[layer];
    for (ParamOp param : Model::params(model.kindOf(layer)))
      bind(environment, step.gradients, param, layer, parameters);
  }
}

void ModelInstance::bind(Environment &environment, Tensors &gradients,
                         ParamOp param, int64_t layer,
                         const Tensors &parameters) {
  std::string name = parameterName(model, param, layer);
  std::string symbol = param.getSymName().str();
  if (auto it = parameters.find(name); it != parameters.end())
    environment.parameters[symbol] = &it->second;
  gradients[name] = Tensor(param.getTensorType().getShape());
  environment.gradients[symbol] = &gradients[name];
}

/// Runs a function of `scope` on the values of its arguments' roles, and adds
/// those of its results.
llvm::LogicalResult ModelInstance::run(mlir::Operation *scope,
                                       Environment &environment, ModelPart part,
                                       FunctionKind kind, Values &values) {
  const auto &row = mlir::rota::signatureOf(part, kind);
  auto function = mlir::rota::functionIn(scope, part, kind);
  if (!function)
    return scope->emitError("expected a function '") << row.name << "'";
  llvm::ArrayRef<Tensor> tokens = values.all(Role::Tokens);
  environment.tokens = tokens.empty() ? nullptr : &tokens.front();
  auto results = runFunction(function, values.inOrder(row.arguments),
                             environment, options);
  if (failed(results))
    return failure();
  values.assign(mlir::rota::FunctionRoles(function).results(), *results);
  return success();
}

llvm::LogicalResult ModelInstance::call(Environment &environment,
                                        ModelPart part, FunctionKind kind,
                                        Values &values) {
  return run(model.module, environment, part, kind, values);
}

llvm::LogicalResult ModelInstance::call(int64_t layer, FunctionKind kind,
                                        Values &values) {
  return run(model.kindOf(layer), layerEnvironments[layer], ModelPart::Layer,
             kind, values);
}

/// Part `part` of `count` equal ones of the rows [batch, sequence] of `whole`,
/// with the shape of what a call of the loss takes.
static Tensor rowsOf(const Tensor &whole, int64_t part, int64_t count) {
  Tensor rows(whole.shape);
  if (count == 1)
    return whole;
  rows.shape[1] /= count;
  int64_t size = whole.size() / count;
  rows.elements.assign(whole.elements.begin() + part * size,
                       whole.elements.begin() + (part + 1) * size);
  return rows;
}

/// Runs a function of the loss on each part of the rows; adds losses where
/// `adds`. The cotangents of the parts, one after the other, are that of the
/// activation.
llvm::LogicalResult ModelInstance::callLoss(FunctionKind kind, Values &values,
                                            bool adds) {
  int64_t blocks = model.lossCalls();
  Tensor cotangent(values.one(Role::InputActivation).shape);
  cotangent.elements.clear();
  for (int64_t block = 0; block < blocks; ++block) {
    Values part = values;
    for (Role role : {Role::InputActivation, Role::Targets})
      part.set(role, rowsOf(values.one(role), block, blocks));
    if (failed(call(lossEnvironment, ModelPart::Loss, kind, part)))
      return failure();
    if (adds)
      addLoss(part);
    if (!part.all(Role::CotangentResidual).empty())
      values.setAll(Role::CotangentResidual, part.all(Role::CotangentResidual));
    for (const Tensor &own : part.all(Role::InputCotangent))
      cotangent.elements.insert(cotangent.elements.end(), own.elements.begin(),
                                own.elements.end());
  }
  if (adds)
    ++microbatchCount;
  if (!cotangent.elements.empty())
    values.set(Role::InputCotangent, std::move(cotangent));
  return success();
}

/// Adds the loss of a call, and keeps its logits.
void ModelInstance::addLoss(const Values &values) {
  step.sum += values.one(Role::LossSum)[0];
  step.weight += values.one(Role::LossWeight)[0];
  auto terms = mlir::rota::FunctionRoles(model.loss).results(Role::LossTerm);
  for (auto [port, sum] : llvm::zip_equal(terms, values.all(Role::LossTerm)))
    step.terms[port.lossTerm().getName().str()] +=
        port.lossTerm().getCoefficient().convertToDouble() * sum[0];
  // Logits of parts of the sequence are no logits of a microbatch.
  auto it = named.find("logits");
  if (it != named.end() && model.lossCalls() == 1)
    step.logits.push_back(it->second);
}

llvm::LogicalResult
ModelInstance::findMeans(llvm::ArrayRef<Microbatch> microbatches) {
  bool reads = false;
  for (int64_t layer = 0; layer < layers(); ++layer)
    Model::function(model.kindOf(layer), FunctionKind::Forward)
        .walk([&](mlir::rota::ObservedMeanOp op) {
          auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
          observedMeans[layer][op.getName().str()] = Tensor(type.getShape());
          reads = true;
        });
  if (!reads)
    return success();
  for (const Microbatch &microbatch : microbatches) {
    auto activation = embed(microbatch.input);
    for (int64_t layer = 0; layer < layers() && succeeded(activation);
         ++layer) {
      Values saved{{Role::Tokens, microbatch.input}};
      activation = forward(layer, *activation, saved);
    }
    if (failed(activation))
      return failure();
  }
  for (int64_t layer = 0; layer < layers(); ++layer)
    for (auto &[name, mean] : observedMeans[layer]) {
      mean = observedSums[layer][name];
      mean *= 1 / double(microbatches.size());
    }
  auxiliarySums.assign(auxiliarySums.size(), {}); // with means of nothing
  return success();
}

llvm::LogicalResult
ModelInstance::beginStep(llvm::ArrayRef<Microbatch> microbatches) {
  if (failed(findMeans(microbatches)))
    return failure();
  if (auxiliaryLosses.empty())
    return success();
  double weight = 0;
  for (const Microbatch &microbatch : microbatches) {
    Values values;
    for (int64_t block = 0; block < model.lossCalls(); ++block) {
      values.set(Role::Targets,
                 rowsOf(microbatch.target, block, model.lossCalls()));
      if (failed(call(lossEnvironment, ModelPart::Loss,
                      FunctionKind::LossWeight, values)))
        return failure();
      weight += values.one(Role::LossWeight)[0];
    }
  }
  for (const auto &loss : auxiliaryLosses)
    auxiliaryCotangents[loss.name] =
        loss.coefficient * weight / (loss.weight * double(microbatches.size()));
  return success();
}

bool ModelInstance::isLossSplit() const {
  return bool(model.function(ModelPart::Loss, FunctionKind::BackwardInput));
}

bool ModelInstance::isSplit(int64_t layer) const {
  return bool(
      Model::function(model.kindOf(layer), FunctionKind::BackwardInput));
}

/// The function that gives the cotangent of the input.
static FunctionKind firstBackward(bool isSplit) {
  return isSplit ? FunctionKind::BackwardInput : FunctionKind::Backward;
}

FailureOr<Tensor> ModelInstance::embed(const Tensor &input) {
  Values values;
  values.set(Role::Tokens, input);
  if (failed(call(embedEnvironment, ModelPart::Embed, FunctionKind::Forward,
                  values)))
    return failure();
  return values.one(Role::OutputActivation);
}

FailureOr<Tensor>
ModelInstance::forward(int64_t layer, const Tensor &activation, Values &saved) {
  saved.set(Role::InputActivation, activation);
  if (failed(call(layer, FunctionKind::Forward, saved)))
    return failure();
  return saved.one(Role::OutputActivation);
}

llvm::LogicalResult ModelInstance::evaluateLoss(const Tensor &activation,
                                                const Microbatch &microbatch) {
  Values values{{Role::Tokens, microbatch.input},
                {Role::InputActivation, activation},
                {Role::Targets, microbatch.target}};
  return callLoss(FunctionKind::Forward, values, /*adds=*/true);
}

FailureOr<Tensor> ModelInstance::backwardOfLoss(const Tensor &activation,
                                                const Tensor &target,
                                                Values &saved) {
  saved.set(Role::InputActivation, activation);
  saved.set(Role::Targets, target);
  if (failed(callLoss(firstBackward(isLossSplit()), saved, /*adds=*/true)))
    return failure();
  return saved.one(Role::InputCotangent);
}

FailureOr<Tensor> ModelInstance::backward(int64_t layer, Values &saved,
                                          const Tensor &cotangent) {
  saved.set(Role::OutputCotangent, cotangent);
  if (failed(call(layer, firstBackward(isSplit(layer)), saved)))
    return failure();
  return saved.one(Role::InputCotangent);
}

llvm::LogicalResult ModelInstance::backwardWeightOfLoss(Values &saved) {
  return callLoss(FunctionKind::BackwardWeight, saved, /*adds=*/false);
}

llvm::LogicalResult ModelInstance::backwardWeight(int64_t layer,
                                                  Values &saved) {
  return call(layer, FunctionKind::BackwardWeight, saved);
}

llvm::LogicalResult ModelInstance::backwardOfEmbed(const Tensor &input,
                                                   const Tensor &cotangent) {
  Values values;
  values.set(Role::Tokens, input);
  values.set(Role::OutputCotangent, cotangent);
  return call(embedEnvironment, ModelPart::Embed, FunctionKind::Backward,
              values);
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
    gradient *= step.scale();
  return std::move(step);
}

static llvm::LogicalResult evaluate(ModelInstance &instance,
                                    const Microbatch &microbatch) {
  auto activation = instance.embed(microbatch.input);
  for (int64_t layer = 0; layer < instance.layers() && succeeded(activation);
       ++layer) {
    Values saved{{Role::Tokens, microbatch.input}};
    activation = instance.forward(layer, *activation, saved);
  }
  if (failed(activation))
    return failure();
  return instance.evaluateLoss(*activation, microbatch);
}

static FailureOr<Tensor> lossBackward(ModelInstance &instance,
                                      const Tensor &activation,
                                      const Microbatch &microbatch) {
  Values saved{{Role::Tokens, microbatch.input}};
  auto cotangent =
      instance.backwardOfLoss(activation, microbatch.target, saved);
  if (succeeded(cotangent) && instance.isLossSplit() &&
      failed(instance.backwardWeightOfLoss(saved)))
    return failure();
  return cotangent;
}

static llvm::LogicalResult differentiate(ModelInstance &instance,
                                         const Microbatch &microbatch) {
  std::vector<Values> saved(instance.layers(),
                            {{Role::Tokens, microbatch.input}});
  auto activation = instance.embed(microbatch.input);
  for (int64_t layer = 0; layer < instance.layers() && succeeded(activation);
       ++layer)
    activation = instance.forward(layer, *activation, saved[layer]);
  if (failed(activation))
    return failure();
  auto cotangent = lossBackward(instance, *activation, microbatch);
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
  if (failed(instance.findMeans(microbatches)))
    return failure();
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
