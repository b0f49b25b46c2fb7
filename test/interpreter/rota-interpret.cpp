// SPDX-License-Identifier: Apache-2.0
//
// rota-interpret: loss and gradients of a model on given data, computed
// sequentially by the reference interpreter. Takes and writes the files of
// `rota probe`, or compares with one.
#include "models/Models.h"
#include "passes/differentiate/Passes.h"
#include "passes/optimizer/Passes.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/program/Part.h"
#include "runtime/program/TensorNames.h"
#include "runtime/random/Philox.h"
#include "test/interpreter/TrainRun.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <CLI/CLI.hpp>
#include <cstring>
#include <fmt/format.h>

using namespace rota::interpreter;
using mlir::rota::Model;
using rota::InputError;
using rota::SafetensorsFile;
using rota::TensorView;

namespace {

struct Arguments {
  std::string model, tokens, weights, dtype, remat = "none", output, reference;
  std::string updates; // options of build-updates; empty: no steps
  std::string freeze;  // as of freeze-parameters
  mlir::rota::AdapterOptions adapters;
  int64_t microbatches = 1, lossBlocks = 1, steps = 10;
  int32_t documentEnd = -1; // -1: no documents
  uint64_t seed = 1;
  double tolerance = 1e-5, learningRate = 3e-4, zLoss = 0;
  bool split = false, roundBF16 = false, stepBalance = false;
  bool allowUnknownKeys = false, onlyLoss = false;
};

Tensor toTensor(const TensorView &view) {
  Tensor tensor(view.shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (view.type == "F64") {
      std::memcpy(&tensor[i], view.data + 8 * i, 8);
    } else if (view.type == "I64") {
      int64_t value;
      std::memcpy(&value, view.data + 8 * i, 8);
      tensor[i] = double(value);
    } else if (view.type == "I32") {
      int32_t value;
      std::memcpy(&value, view.data + 4 * i, 4);
      tensor[i] = value;
    } else {
      float value;
      readFloats(view, i, i + 1, &value);
      tensor[i] = value;
    }
  }
  return tensor;
}

Tensors readTensors(const std::string &path) {
  SafetensorsFile file(path);
  Tensors tensors;
  for (const auto &[name, view] : file.tensors())
    tensors[name] = toTensor(view);
  return tensors;
}

const Tensor &require(const Tensors &tensors, const std::string &path,
                      const std::string &name) {
  auto it = tensors.find(name);
  if (it == tensors.end())
    throw InputError(fmt::format("'{}': no tensor '{}'", path, name));
  return it->second;
}

/// Columns [begin, end) of a [rows, columns] tensor.
Tensor columns(const Tensor &tensor, int64_t begin, int64_t end) {
  Tensor result({tensor.dim(0), end - begin});
  for (int64_t row = 0; row < tensor.dim(0); ++row)
    for (int64_t i = begin; i < end; ++i)
      result({row, i - begin}) = tensor({row, i});
  return result;
}

/// Part `index` of `count` equal parts along the first dimension.
Tensor part(const Tensor &tensor, int64_t index, int64_t count) {
  Tensor result(tensor.shape);
  result.shape[0] /= count;
  int64_t size = tensor.size() / count;
  result.elements.assign(tensor.elements.begin() + index * size,
                         tensor.elements.begin() + (index + 1) * size);
  return result;
}

/// The whole batch: `tokens` [batch, sequence + 1], with a `mask` [batch,
/// sequence] that is 0 where a target does not count, or `inputs` and
/// `targets`.
Microbatch readBatch(const Arguments &arguments) {
  Tensors file = readTensors(arguments.tokens);
  Microbatch batch;
  if (file.count("tokens")) {
    const Tensor &tokens = file["tokens"];
    if (tokens.rank() != 2 || tokens.dim(1) < 2)
      throw InputError(fmt::format(
          "'{}': expected tokens [batch, sequence + 1]", arguments.tokens));
    int64_t length = tokens.dim(1) - 1;
    batch = {columns(tokens, 0, length), columns(tokens, 1, length + 1)};
    if (auto mask = file.find("mask"); mask != file.end())
      for (int64_t i = 0; i < batch.target.size(); ++i)
        if (mask->second[i] == 0)
          batch.target[i] = -1;
  } else {
    batch = {require(file, arguments.tokens, "inputs"),
             require(file, arguments.tokens, "targets")};
  }
  if (batch.input.rank() < 1 || batch.input.dim(0) % arguments.microbatches)
    throw InputError(fmt::format(
        "'{}': expected a batch that is a multiple of {} microbatches",
        arguments.tokens, arguments.microbatches));
  return batch;
}

std::vector<float> draw(mlir::Attribute init, const rota::RandomStream &stream,
                        int64_t count) {
  std::vector<float> values(count);
  if (auto normal = llvm::dyn_cast<mlir::rota::NormalAttr>(init))
    stream.normal(0, count, normal.getMean().convertToDouble(),
                  normal.getDeviation().convertToDouble(), values.data());
  else if (auto uniform = llvm::dyn_cast<mlir::rota::UniformAttr>(init))
    stream.uniform(0, count, uniform.getLow().convertToDouble(),
                   uniform.getHigh().convertToDouble(), values.data());
  else
    values.assign(count, float(llvm::cast<mlir::rota::ConstantAttr>(init)
                                   .getValue()
                                   .convertToDouble()));
  return values;
}

/// `layer` is -1 outside the stack.
void forEachParameter(
    const Model &model,
    llvm::function_ref<void(mlir::rota::ParamOp param, int64_t layer)> body) {
  for (auto param : model.globalParams())
    body(param, -1);
  mlir::rota::StackOp stack = model.stack;
  for (int64_t layer = 0; layer < int64_t(stack.getLayers()); ++layer)
    for (auto param : Model::params(model.kindOf(layer)))
      body(param, layer);
}

/// The parameter as the runtime describes it.
rota::Parameter describe(mlir::rota::ParamOp param, int64_t layer) {
  rota::Parameter parameter;
  parameter.name = Model::parameterName(param);
  parameter.shape = param.getTensorType().getShape().vec();
  if (layer >= 0)
    parameter.layers = {layer};
  if (auto joined = param.getJoinedAttr())
    parameter.joined = {Model::checkpointName(param),
                        int(joined.getDimension()), joined.getBegin(),
                        joined.getSize()};
  return parameter;
}

/// Calls body(element of what files have for the parameter, element of the
/// parameter) for all elements.
void forEachElement(const rota::Parameter &parameter,
                    llvm::function_ref<void(int64_t, int64_t)> body) {
  rota::Part all = rota::optimizerPart(parameter, {}, {});
  rota::forEachRun(all, 0, all.elements(),
                   [&](int64_t inFile, int64_t own, int64_t count) {
                     for (int64_t i = 0; i < count; ++i)
                       body(inFile + i, own + i);
                   });
}

/// The parameters that the runtime makes without a weights file.
Tensors initialParameters(const Model &model, uint64_t seed) {
  Tensors parameters;
  forEachParameter(model, [&](mlir::rota::ParamOp param, int64_t layer) {
    rota::Parameter parameter = describe(param, layer);
    rota::RandomStream stream(seed, fileName(parameter), layer + 1);
    auto values = draw(param.getInit(), stream,
                       elementCount(llvm::ArrayRef(fileShape(parameter))));
    Tensor own(parameter.shape);
    forEachElement(parameter,
                   [&](int64_t inFile, int64_t i) { own[i] = values[inFile]; });
    parameters[parameterName(model, param, layer)] = std::move(own);
  });
  return parameters;
}

/// Adapters that the file has not begin as the runtime makes them.
Tensors readParameters(const Model &model, const std::string &path,
                       uint64_t seed) {
  Tensors tensors = readTensors(path);
  Tensors parameters = initialParameters(model, seed);
  forEachParameter(model, [&](mlir::rota::ParamOp param, int64_t layer) {
    rota::Parameter parameter = describe(param, layer);
    if (rota::isAdapter(parameter.name) &&
        !tensors.count(tensorName(parameter, layer)))
      return;
    std::vector<double> elements;
    for (const std::string &name : storedTensors(parameter, layer).names)
      llvm::append_range(elements, require(tensors, path, name).elements);
    Tensor own(parameter.shape);
    forEachElement(parameter, [&](int64_t inFile, int64_t i) {
      own[i] = elements.at(inFile);
    });
    parameters[parameterName(model, param, layer)] = std::move(own);
  });
  return parameters;
}

mlir::rota::BuiltModel build(mlir::MLIRContext &context,
                             const Arguments &arguments,
                             const Microbatch &batch) {
  mlir::rota::BuildOptions options;
  options.sequences = batch.input.dim(0) / arguments.microbatches;
  options.sequenceLength = batch.input.rank() > 1 ? batch.input.dim(1) : 1;
  options.zLoss = arguments.zLoss;
  options.lossBlocks = arguments.lossBlocks;
  options.adapters = arguments.adapters;
  options.allowUnknownKeys = arguments.allowUnknownKeys;
  if (arguments.documentEnd >= 0)
    options.documentEnd = arguments.documentEnd;
  if (arguments.stepBalance)
    options.routers.balanceOver = mlir::rota::LoadBalanceOver::Step;
  if (!arguments.dtype.empty())
    options.compute = arguments.dtype == "bf16" ? mlir::rota::ComputeType::BF16
                                                : mlir::rota::ComputeType::F32;
  auto built = mlir::rota::buildModel(context, arguments.model, options);
  if (failed(built))
    throw InputError(fmt::format("cannot build '{}'", arguments.model));
  mlir::PassManager manager(&context, mlir::ModuleOp::getOperationName());
  manager.addPass(mlir::rota::createFreezeParameters({arguments.freeze}));
  mlir::rota::DifferentiateOptions differentiate;
  differentiate.remat = arguments.remat;
  differentiate.split = arguments.split;
  if (!arguments.onlyLoss)
    manager.addPass(mlir::rota::createDifferentiate(differentiate));
  if (!arguments.updates.empty()) {
    mlir::rota::registerOptimizerPasses();
    if (failed(mlir::parsePassPipeline(
            "build-updates{" + arguments.updates + "}", manager)))
      throw InputError(
          fmt::format("wrong options of updates '{}'", arguments.updates));
  }
  if (failed(manager.run(*built->module)))
    throw InputError(fmt::format("cannot differentiate '{}'", arguments.model));
  return std::move(*built);
}

/// Adds the gradients under the names that files have for parameters.
void addGradients(const Model &model, const Tensors &gradients,
                  Tensors &tensors) {
  forEachParameter(model, [&](mlir::rota::ParamOp param, int64_t layer) {
    if (param.getFrozen())
      return;
    rota::Parameter parameter = describe(param, layer);
    const Tensor &gradient = gradients.at(parameterName(model, param, layer));
    rota::StoredTensors stored = storedTensors(parameter, layer);
    llvm::SmallVector<Tensor *> places;
    for (const std::string &name : stored.names)
      places.push_back(
          &tensors.try_emplace("grad." + name, stored.shape).first->second);
    int64_t size = places.front()->size();
    forEachElement(parameter, [&](int64_t inFile, int64_t i) {
      (*places[inFile / size])[inFile % size] = gradient[i];
    });
  });
}

/// `loss`, `logits` and `grad.<parameter>`.
Tensors results(const Model &model, Step step) {
  Tensors tensors;
  tensors["loss"] = Tensor::scalar(step.loss());
  if (!step.terms.empty())
    tensors["loss.main"] = Tensor::scalar(step.sum * step.scale());
  for (const auto &[name, term] : step.terms)
    tensors["loss." + name] = Tensor::scalar(term * step.scale());
  addGradients(model, step.gradients, tensors);
  for (const Tensor &logits : step.logits) {
    Tensor &all = tensors["logits"];
    if (all.shape.empty()) {
      all = logits;
      continue;
    }
    all.shape[0] += logits.shape[0];
    all.elements.insert(all.elements.end(), logits.elements.begin(),
                        logits.elements.end());
  }
  return tensors;
}

void write(const std::string &path, const Tensors &tensors) {
  std::map<std::string, TensorView> views;
  for (const auto &[name, tensor] : tensors)
    views[name] = {"F64",
                   {tensor.shape.begin(), tensor.shape.end()},
                   reinterpret_cast<const char *>(tensor.elements.data()),
                   8 * tensor.size()};
  rota::writeSafetensors(path, views);
}

/// Compares each tensor of the file with ours; returns whether all are within
/// the tolerance. A file without a loss and gradients is no result.
bool compare(const Arguments &arguments, const Tensors &expected) {
  Tensors file = readTensors(arguments.reference);
  bool isWithin = true;
  double worst = 0;
  std::string worstName;
  for (const auto &[name, tensor] : expected) {
    if (name == "logits" && !file.count(name))
      continue;
    double error =
        relativeError(require(file, arguments.reference, name), tensor);
    if (error >= worst) {
      worst = error;
      worstName = name;
    }
    if (error > arguments.tolerance) {
      fmt::print("{}: relative error {:.3g}\n", name, error);
      isWithin = false;
    }
  }
  fmt::print("{} tensors, largest relative error {:.3g} in '{}'\n",
             expected.size(), worst, worstName);
  return isWithin;
}

bool run(const Arguments &arguments) {
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Microbatch batch = readBatch(arguments);
  auto built = build(context, arguments, batch);
  auto model = Model::get(*built.module);
  if (failed(model))
    throw InputError(fmt::format("'{}' is no model", arguments.model));
  Tensors parameters =
      arguments.weights.empty()
          ? initialParameters(*model, arguments.seed)
          : readParameters(*model, arguments.weights, arguments.seed);
  llvm::SmallVector<Microbatch> microbatches;
  for (int64_t i = 0; i < arguments.microbatches; ++i)
    microbatches.push_back({part(batch.input, i, arguments.microbatches),
                            part(batch.target, i, arguments.microbatches)});
  auto compute = arguments.onlyLoss ? evaluate : differentiate;
  auto step = compute(*model, parameters, microbatches, {arguments.roundBF16});
  if (failed(step))
    throw rota::RunError(fmt::format("cannot run '{}'", arguments.model));
  Tensors tensors;
  if (arguments.onlyLoss)
    tensors["loss"] = Tensor::scalar(step->loss());
  else
    tensors = results(*model, std::move(*step));
  if (!arguments.updates.empty()) {
    auto losses =
        train(*model, parameters, microbatches,
              {arguments.steps, arguments.learningRate}, {arguments.roundBF16});
    if (failed(losses))
      throw rota::RunError(fmt::format("cannot train '{}'", arguments.model));
    tensors["loss_curve"] = Tensor({arguments.steps}, *losses);
  }
  if (!arguments.output.empty())
    write(arguments.output, tensors);
  return arguments.reference.empty() || compare(arguments, tensors);
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Loss and gradients of a model by the reference interpreter");
  app.add_option("--model", arguments.model, "As for rota")->required();
  app.add_flag("--allow-unknown-keys", arguments.allowUnknownKeys);
  app.add_option("--tokens", arguments.tokens,
                 "tokens [batch, sequence + 1], or inputs and targets")
      ->required();
  app.add_option("--weights", arguments.weights,
                 "Parameters by name; else drawn from the seed");
  app.add_option("--seed", arguments.seed);
  app.add_option("--microbatches", arguments.microbatches)
      ->check(CLI::PositiveNumber);
  app.add_option("--dtype", arguments.dtype)
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--remat", arguments.remat);
  app.add_option("--z-loss", arguments.zLoss);
  app.add_option("--loss-blocks", arguments.lossBlocks);
  app.add_option("--document-end", arguments.documentEnd,
                 "The end token of rota's --document-mask");
  app.add_flag("--step-balance", arguments.stepBalance,
               "As rota's --load-balance-over step");
  app.add_option("--updates", arguments.updates,
                 "Options of the pass build-updates: also the loss of each of "
                 "--steps on the batch, at one rate and without clipping");
  app.add_option("--freeze", arguments.freeze);
  app.add_option("--lora-rank", arguments.adapters.rank);
  app.add_option("--lora-alpha", arguments.adapters.alpha);
  app.add_option("--lora-targets", arguments.adapters.targets)->delimiter(',');
  app.add_option("--steps", arguments.steps)->check(CLI::PositiveNumber);
  app.add_option("--learning-rate", arguments.learningRate);
  app.add_flag("--only-loss", arguments.onlyLoss, "No gradients, no logits");
  app.add_flag("--split", arguments.split, "Split the backward functions");
  app.add_flag("--round-bf16", arguments.roundBF16,
               "Round values of bf16 type");
  app.add_option("-o", arguments.output, "Where to write, in f64");
  app.add_option("--compare", arguments.reference,
                 "Compare the tensors of this file");
  app.add_option("--tolerance", arguments.tolerance,
                 "Of --compare: largest difference over largest element");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments) ? rota::kExitSuccess : rota::kExitRunFailed;
  } catch (const InputError &error) {
    fmt::print(stderr, "rota-interpret: {}\n", error.what());
    return rota::kExitBadInput;
  } catch (const rota::RunError &error) {
    fmt::print(stderr, "rota-interpret: {}\n", error.what());
    return rota::kExitRunFailed;
  }
}
