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

using Values = llvm::SmallVector<Tensor>;

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

namespace {
/// One step of one model: the functions by name, each in the environment of the
/// module or of a layer.
class Run {
public:
  Run(const Model &model, const Tensors &parameters, const Options &options)
      : model(model), options(options) {
    globals.named = &named;
    for (const auto &[name, shape] : parameterShapes(model))
      step.gradients[name] = Tensor(shape);
    for (ParamOp param : model.globalParams())
      bind(globals, param, -1, parameters);
    for (int64_t layer = 0; layer < layerCount(model); ++layer) {
      Environment &environment = layers.emplace_back();
      for (ParamOp param : Model::params(model.kindOf(layer)))
        bind(environment, param, layer, parameters);
    }
  }

  llvm::LogicalResult evaluate(const Microbatch &microbatch);
  llvm::LogicalResult differentiate(const Microbatch &microbatch);

  Step takeStep() {
    for (auto &[name, gradient] : step.gradients)
      gradient *= 1 / step.weight;
    return std::move(step);
  }

private:
  void bind(Environment &environment, ParamOp param, int64_t layer,
            const Tensors &parameters) {
    std::string name = checkpointName(model, param, layer);
    std::string symbol = param.getSymName().str();
    if (auto it = parameters.find(name); it != parameters.end())
      environment.parameters[symbol] = &it->second;
    environment.gradients[symbol] = &step.gradients[name];
  }

  FailureOr<Values> callGlobal(llvm::StringRef name, Values arguments) {
    auto function = model.function(name);
    if (!function)
      return mlir::ModuleOp(model.module).emitError("expected a function '")
             << name << "'";
    return runFunction(function, arguments, globals, options);
  }

  FailureOr<Values> callLayer(int64_t layer, llvm::StringRef name,
                              Values arguments) {
    LayerOp kind = model.kindOf(layer);
    auto function = Model::function(kind, name);
    if (!function)
      return kind.emitError("expected a function '") << name << "'";
    return runFunction(function, arguments, layers[layer], options);
  }

  /// Adds a loss function's first two results, and keeps its logits.
  void addLoss(const Values &results) {
    step.sum += results[0][0];
    step.weight += results[1][0];
    if (auto it = named.find("logits"); it != named.end())
      step.logits.push_back(it->second);
  }

  FailureOr<Tensor> backwardOfLoss(Tensor activation, const Tensor &target);
  FailureOr<Tensor> backwardOfLayer(int64_t layer, Values saved,
                                    Tensor cotangent);

  const Model &model;
  Options options;
  Step step;
  Tensors named;
  Environment globals;
  std::vector<Environment> layers;
};
} // namespace

/// All results of a function after the first `count`.
static Values after(const Values &results, unsigned count) {
  return Values(llvm::drop_begin(results, count));
}

static Values concatenate(Values first, const Values &second) {
  first.append(second);
  return first;
}

llvm::LogicalResult Run::evaluate(const Microbatch &microbatch) {
  auto results = callGlobal(function::embed, {microbatch.input});
  for (int64_t layer = 0; layer < layerCount(model) && succeeded(results);
       ++layer)
    results = callLayer(layer, function::forward, {results->front()});
  if (succeeded(results))
    results = callGlobal(function::loss, {results->front(), microbatch.target});
  if (failed(results))
    return failure();
  addLoss(*results);
  return success();
}

FailureOr<Tensor> Run::backwardOfLoss(Tensor activation, const Tensor &target) {
  bool isSplit = bool(model.function(function::lossBackwardInput));
  auto results =
      callGlobal(isSplit ? function::lossBackwardInput : function::lossBackward,
                 {activation, target});
  if (failed(results))
    return failure();
  addLoss(*results);
  if (isSplit &&
      failed(callGlobal(function::lossBackwardWeight,
                        concatenate({activation, target}, after(*results, 3)))))
    return failure();
  return (*results)[2];
}

/// `saved`: the layer's input and residuals.
FailureOr<Tensor> Run::backwardOfLayer(int64_t layer, Values saved,
                                       Tensor cotangent) {
  bool isSplit =
      bool(Model::function(model.kindOf(layer), function::backwardInput));
  auto results =
      callLayer(layer, isSplit ? function::backwardInput : function::backward,
                concatenate(saved, {cotangent}));
  if (failed(results))
    return failure();
  if (isSplit && failed(callLayer(layer, function::backwardWeight,
                                  concatenate(saved, after(*results, 1)))))
    return failure();
  return results->front();
}

llvm::LogicalResult Run::differentiate(const Microbatch &microbatch) {
  auto results = callGlobal(function::embed, {microbatch.input});
  std::vector<Values> saved;
  for (int64_t layer = 0; layer < layerCount(model); ++layer) {
    if (failed(results))
      return failure();
    Values input = {results->front()};
    results = callLayer(layer, function::forward, input);
    if (succeeded(results))
      saved.push_back(concatenate(input, after(*results, 1)));
  }
  if (failed(results))
    return failure();
  auto cotangent = backwardOfLoss(results->front(), microbatch.target);
  for (int64_t layer = layerCount(model) - 1;
       layer >= 0 && succeeded(cotangent); --layer)
    cotangent = backwardOfLayer(layer, saved[layer], *cotangent);
  if (failed(cotangent))
    return failure();
  return callGlobal(function::embedBackward, {microbatch.input, *cotangent});
}

FailureOr<Step>
rota::interpreter::evaluate(const Model &model, const Tensors &parameters,
                            llvm::ArrayRef<Microbatch> microbatches,
                            const Options &options) {
  Run run(model, parameters, options);
  for (const Microbatch &microbatch : microbatches)
    if (failed(run.evaluate(microbatch)))
      return failure();
  Step step = run.takeStep();
  step.gradients.clear();
  return step;
}

FailureOr<Step>
rota::interpreter::differentiate(const Model &model, const Tensors &parameters,
                                 llvm::ArrayRef<Microbatch> microbatches,
                                 const Options &options) {
  Run run(model, parameters, options);
  for (const Microbatch &microbatch : microbatches)
    if (failed(run.differentiate(microbatch)))
      return failure();
  return run.takeStep();
}
