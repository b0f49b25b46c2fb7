// SPDX-License-Identifier: Apache-2.0
#include "test/interpreter/TrainRun.h"

#include "ir/rota/model/Update.h"

#include <cmath>

using namespace mlir::rota;

namespace rota::interpreter {
namespace {

/// The parameters with their states, changed by their update functions.
class Updater {
public:
  Updater(const Model &model, Tensors &parameters,
          const TrainSettings &settings, const Options &options)
      : model(model), parameters(parameters), settings(settings),
        options(options) {
    mlir::ModuleOp module = model.module;
    if (auto known =
            RotaDialect::OptionsAttrHelper(module.getContext()).getAttr(module))
      for (auto option : known.getAsRange<OptionAttr>())
        values[option.getName().str()] = option.getValue().convertToDouble();
  }

  /// Step t = 1, 2, ... with these gradients.
  llvm::LogicalResult step(const Tensors &gradients, int64_t t) {
    for (ParamOp param : model.globalParams())
      if (failed(update(param, -1, gradients, t)))
        return llvm::failure();
    StackOp stack = model.stack;
    for (int64_t layer = 0; layer < int64_t(stack.getLayers()); ++layer)
      for (ParamOp param : Model::params(model.kindOf(layer)))
        if (failed(update(param, layer, gradients, t)))
          return llvm::failure();
    return llvm::success();
  }

private:
  llvm::LogicalResult update(ParamOp param, int64_t layer,
                             const Tensors &gradients, int64_t t) {
    if (param.getFrozen())
      return llvm::success();
    UpdateFunction update = UpdateFunction::of(param);
    std::string name = parameterName(model, param, layer);
    Tensors &kept = states[name];
    std::vector<Tensor> arguments;
    for (unsigned i = 0; i < update.getFunction().getNumArguments(); ++i)
      if (i == UpdateFunction::parameter)
        arguments.push_back(parameters.at(name));
      else if (i == UpdateFunction::gradient)
        arguments.push_back(gradients.at(name));
      else if (StateAttr state = update.stateOf(i))
        arguments.push_back(stateFor(kept, state, parameters.at(name)));
      else
        arguments.push_back(Tensor::scalar(valueOf(update.scalarOf(i), t)));
    auto results = runFunction(update.getFunction(), arguments, options);
    if (failed(results))
      return llvm::failure();
    parameters[name] = (*results)[0];
    for (auto [number, argument] : llvm::enumerate(update.states()))
      kept[update.stateOf(argument).getName().str()] = (*results)[1 + number];
    return llvm::success();
  }

  static const Tensor &stateFor(Tensors &kept, StateAttr state,
                                const Tensor &parameter) {
    auto [place, isNew] = kept.try_emplace(state.getName().str());
    if (isNew) {
      place->second = Tensor(parameter.shape);
      for (double &element : place->second.elements)
        element = state.getInitial().convertToDouble();
    }
    return place->second;
  }

  double valueOf(ScalarAttr scalar, int64_t t) const {
    double x = 0.0;
    if (scalar.getOption())
      x = values.at(scalar.getOption().str());
    switch (scalar.getKind()) {
    case ScalarKind::LearningRate:
      return settings.learningRate * scalar.getFactorOrOne();
    case ScalarKind::GradientScale:
      return 1.0; // gradients are means
    case ScalarKind::Option:
      return x * scalar.getFactorOrOne();
    case ScalarKind::Complement:
      return 1.0 - x;
    case ScalarKind::Correction:
      return 1.0 - std::pow(x, double(t));
    case ScalarKind::Skip:
      return 0.0;
    }
    llvm_unreachable("a kind of scalar");
  }

  const Model &model;
  Tensors &parameters;
  const TrainSettings &settings;
  const Options &options;
  std::map<std::string, double> values;  // the optimizer's options
  std::map<std::string, Tensors> states; // by parameter
};

} // namespace

llvm::FailureOr<std::vector<double>>
train(const Model &model, Tensors parameters,
      llvm::ArrayRef<Microbatch> microbatches, const TrainSettings &settings,
      const Options &options) {
  Updater updater(model, parameters, settings, options);
  std::vector<double> losses;
  for (int64_t t = 1; t <= settings.steps; ++t) {
    auto step = differentiate(model, parameters, microbatches, options);
    if (failed(step) || failed(updater.step(step->gradients, t)))
      return llvm::failure();
    losses.push_back(step->loss());
  }
  return losses;
}

} // namespace rota::interpreter
