// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions, since the reader of weights reports by them; they
// do not leave this file.
#include "tools/rota/CheckAdapter.h"

#include "ir/rota/model/Model.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/HubTensors.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/program/TensorNames.h"

#include <filesystem>
#include <fmt/format.h>

namespace rota {

using Shapes = std::map<std::string, std::vector<int64_t>>;

static void addShape(Shapes &shapes, const std::string &name,
                     mlir::rota::ParamOp param) {
  if (isAdapter(name))
    shapes[kAdapterPrefix + name] = param.getWholeShape().vec();
}

/// The adapters of the model, under PEFT's names.
static Shapes adaptersOf(const mlir::rota::Model &model) {
  using mlir::rota::Model;
  Shapes shapes;
  for (mlir::rota::ParamOp param : model.globalParams())
    addShape(shapes, Model::checkpointName(param), param);
  mlir::rota::StackOp stack = model.stack;
  for (int64_t layer = 0, end = stack.getLayers(); layer < end; ++layer)
    for (mlir::rota::ParamOp param : Model::params(model.kindOf(layer)))
      addShape(shapes, withLayer(Model::checkpointName(param), layer), param);
  return shapes;
}

/// "q_proj" of "...self_attn.q_proj.lora_A.weight".
static std::string targetOf(const std::string &adapter) {
  std::string layer = adapter.substr(0, adapter.size() - kAdapterA.size());
  return layer.substr(layer.rfind('.') + 1);
}

static void compare(const Shapes &expected, const HubTensors &found,
                    const std::string &model) {
  auto fail = [&](const std::string &name, const std::string &wants,
                  const std::string &has) {
    throw InputError(fmt::format("'adapter': '{}': tensor '{}': expected {} "
                                 "of the model '{}', got {}",
                                 found.file(), name, wants, model, has));
  };
  for (const auto &[name, shape] : expected) {
    std::string wants = fmt::format("shape {} of target '{}'", shapeText(shape),
                                    targetOf(name));
    const StoredTensor *tensor = found.find(name);
    if (!tensor)
      fail(name, wants, "no such tensor");
    else if (tensor->shape != shape)
      fail(name, wants, shapeText(tensor->shape));
  }
  for (const auto &[name, tensor] : found.tensors())
    if (!expected.contains(name))
      fail(name, "an adapter of a layer", "one of another layer");
}

bool checkAdapter(const mlir::rota::BuiltModel &model,
                  const std::string &folder, std::string &error) {
  auto parts = mlir::rota::Model::get(*model.module);
  if (failed(parts)) {
    error = "'adapter': expected a model, got another module";
    return false;
  }
  try {
    compare(adaptersOf(*parts),
            HubTensors((std::filesystem::path(folder) / kAdapterFile).string()),
            model.name);
    return true;
  } catch (const std::exception &failure) {
    error = failure.what();
    return false;
  }
}

} // namespace rota
