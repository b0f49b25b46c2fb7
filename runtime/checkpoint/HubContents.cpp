// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/HubContents.h"
#include "runtime/checkpoint/ReadPart.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/JsonText.h"
#include "runtime/program/TensorNames.h"
#include "runtime/program/WeightFiles.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <sstream>

using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace rota {

/// Takes the configuration and the type that follows from it; returns what is
/// wrong with the text, or nothing.
static std::string takeConfig(HubContents &contents, std::string text,
                              const std::optional<std::string> &type) {
  contents.typeKey = "torch_dtype";
  if (!text.empty()) {
    if (std::string mistake = nestingMistake(text); !mistake.empty())
      return "the model's configuration: " + mistake;
    contents.config =
        ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!contents.config.is_object())
      return "expected a JSON object as the model's configuration";
  }
  for (const char *key : {"torch_dtype", "dtype"}) // the new key wins
    if (contents.config.contains(key))
      contents.typeKey = key;
  bool isBf16 = contents.config.contains(contents.typeKey) &&
                contents.config[contents.typeKey] == "bfloat16";
  contents.type = type.value_or(isBf16 ? "BF16" : "F32");
  contents.configText = std::move(text);
  return "";
}

/// Names of states have a slash after the parameter's name.
static bool isMaster(const SavedTensor &tensor) {
  return tensor.name.find('/') == std::string::npos;
}

static WrittenTensor writtenOf(Checkpoint &checkpoint, const SavedTensor &saved,
                               const std::string &type) {
  if (saved.type != "F32" && saved.type != "BF16")
    throw DamagedCheckpoint(fmt::format(
        "'{}': tensor '{}': expected a master copy of type F32 or BF16, got {}",
        checkpoint.folder(), saved.name, saved.type));
  Parameter parameter;
  parameter.name = saved.name;
  parameter.shape = saved.shape;
  if (placeholders(saved.name) > saved.shape.size())
    throw DamagedCheckpoint(
        fmt::format("'{}': tensor '{}': expected a dimension for each "
                    "placeholder, got shape {}",
                    checkpoint.folder(), saved.name, shapeText(saved.shape)));
  StoredTensors stored = storedTensors(parameter, -1);
  WrittenTensor written;
  written.names = stored.names;
  written.shape = stored.shape;
  written.type = type;
  int64_t count = elementCount(parameter);
  written.bytes = typeBytes(type) * count;
  written.read = [&checkpoint, &saved, count](float *whole) {
    readFloats(checkpoint, saved, wholeBox(saved.shape), count, whole);
  };
  return written;
}

HubContents contentsOf(Checkpoint &checkpoint,
                       const std::optional<std::string> &type) {
  HubContents contents;
  const Manifest &manifest = checkpoint.manifest();
  if (std::string why = takeConfig(contents, manifest.config, type);
      !why.empty())
    throw DamagedCheckpoint(fmt::format("'{}': {}", checkpoint.folder(), why));
  for (const SavedTensor &saved : manifest.tensors)
    if (isMaster(saved))
      contents.tensors.push_back(writtenOf(checkpoint, saved, contents.type));
  return contents;
}

bool isHub(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return fs::is_regular_file(path, error);
  return std::ranges::any_of(kWeightFiles, [&](const char *name) {
    return fs::exists(fs::path(path) / name, error);
  });
}

/// The configuration beside the weights; empty: there is none.
static std::string configBeside(const fs::path &weights) {
  fs::path path = weights.parent_path() / "config.json";
  std::error_code unknown;
  if (!fs::exists(path, unknown) && !unknown)
    return "";
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw InputError(fmt::format("cannot read '{}'", path.string()));
  return text.str();
}

/// What of `quantization_config` no reader of weights knows, or nothing.
static std::string unknownQuantization(const ordered_json &config) {
  if (!config.contains("quantization_config") ||
      config["quantization_config"].is_null())
    return "";
  const ordered_json &given = config["quantization_config"];
  if (!given.is_object())
    return "'quantization_config': expected an object, got " + jsonText(given);
  const ordered_json method = given.value("quant_method", ordered_json());
  if (std::ranges::none_of(kQuantizations,
                           [&](const char *name) { return method == name; }))
    return fmt::format(
        "'quantization_config.quant_method': expected one of {}, got {}",
        fmt::join(kQuantizations, ", "), jsonText(method));
  const ordered_json block = {kQuantizedBlock, kQuantizedBlock};
  const ordered_json size = given.value("weight_block_size", block);
  if (size != block && !size.is_null())
    return fmt::format(
        "'quantization_config.weight_block_size': expected {}, got {}",
        jsonText(block), jsonText(size));
  return "";
}

HubContents contentsOf(const HubTensors &tensors,
                       const std::optional<std::string> &type) {
  HubContents contents;
  contents.keepsTypes = !type;
  if (std::string why =
          takeConfig(contents, configBeside(tensors.file()), type);
      !why.empty())
    throw InputError(fmt::format("'{}': {}", tensors.file(), why));
  if (std::string why = unknownQuantization(contents.config); !why.empty())
    throw InputError(fmt::format("'{}': {}", tensors.file(), why));
  for (const auto &[name, tensor] : tensors.tensors()) {
    bool isPlain = tensor.form == StoredTensor::Plain;
    bool stays = isPlain && (!type || !tensor.isFloat() ||
                             tensor.values.type == contents.type);
    WrittenTensor written;
    written.names = {name};
    written.shape = tensor.shape;
    written.type = stays ? tensor.values.type : contents.type;
    written.bytes = typeBytes(written.type) * tensor.elements();
    if (stays)
      written.raw = tensor.values.data;
    written.read = [&tensor](float *whole) {
      readFloats(tensor, 0, tensor.elements(), whole);
    };
    contents.tensors.push_back(std::move(written));
  }
  return contents;
}

} // namespace rota
