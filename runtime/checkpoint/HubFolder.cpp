// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/HubFolder.h"
#include "runtime/checkpoint/ReadPart.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/Convert.h"
#include "runtime/program/JsonText.h"
#include "runtime/program/TensorNames.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace rota {

namespace {

/// Files of a hub folder that stay true for other weights of the model.
constexpr const char *kCarriedFiles[] = {"tokenizer.json",
                                         "tokenizer_config.json",
                                         "tokenizer.model",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.json",
                                         "vocab.txt",
                                         "merges.txt",
                                         "spiece.model",
                                         "chat_template.jinja",
                                         "chat_template.json",
                                         "generation_config.json",
                                         "LICENSE",
                                         "LICENSE.txt",
                                         "LICENSE.md",
                                         "NOTICE",
                                         "USE_POLICY.md"};

/// The hub's tensors that one tensor of the checkpoint is split into, one
/// after the other.
struct HubTensor {
  const SavedTensor *saved = nullptr;
  StoredTensors stored;
  int64_t bytes = 0; // as written
  size_t shard = 0;
};

/// Names of states have a slash after the parameter's name.
bool isMaster(const SavedTensor &tensor) {
  return tensor.name.find('/') == std::string::npos;
}

class HubWriter {
public:
  HubWriter(Checkpoint &checkpoint, const HubForm &form)
      : checkpoint(checkpoint), form(form) {}

  HubSummary write(const fs::path &place);

private:
  void readConfig();
  void collectTensors();
  void writeConfig(const fs::path &place) const;
  void copyFiles(const fs::path &place);
  void writeShard(const fs::path &place, size_t shard);
  void writeTensor(SafetensorsWriter &writer, const HubTensor &tensor);
  void writeIndex(const fs::path &place) const;
  std::string shardName(size_t shard) const;

  Checkpoint &checkpoint;
  const HubForm &form;
  ordered_json config;
  const char *typeKey = "torch_dtype"; // in config
  std::vector<HubTensor> tensors;
  size_t shards = 0;
  HubSummary summary;
};

HubSummary HubWriter::write(const fs::path &place) {
  if (!form.model.empty() && !fs::is_directory(form.model))
    throw InputError(fmt::format("'{}': expected a hub folder, whose other "
                                 "files are carried on",
                                 form.model));
  readConfig();
  collectTensors();
  for (size_t shard = 0; shard < shards; ++shard)
    writeShard(place, shard);
  if (shards > 1)
    writeIndex(place);
  if (summary.hasConfig)
    writeConfig(place);
  if (!form.model.empty())
    copyFiles(place);
  return summary;
}

void HubWriter::readConfig() {
  const std::string &text = checkpoint.manifest().config;
  summary.hasConfig = !text.empty();
  if (summary.hasConfig) {
    if (std::string mistake = nestingMistake(text); !mistake.empty())
      throw DamagedCheckpoint(fmt::format("'{}': the model's configuration: {}",
                                          checkpoint.folder(), mistake));
    config = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!config.is_object())
      throw DamagedCheckpoint(fmt::format(
          "'{}': expected a JSON object as the model's configuration",
          checkpoint.folder()));
  }
  for (const char *key : {"torch_dtype", "dtype"}) // the new key wins
    if (config.contains(key))
      typeKey = key;
  bool isBf16 = config.contains(typeKey) && config[typeKey] == "bfloat16";
  summary.type = form.type.value_or(isBf16 ? "BF16" : "F32");
}

void HubWriter::collectTensors() {
  int64_t inShard = 0;
  for (const SavedTensor &saved : checkpoint.manifest().tensors) {
    if (!isMaster(saved))
      continue;
    if (saved.type != "F32")
      throw DamagedCheckpoint(fmt::format(
          "'{}': tensor '{}': expected a master copy of type F32, got {}",
          checkpoint.folder(), saved.name, saved.type));
    Parameter parameter;
    parameter.name = saved.name;
    parameter.shape = saved.shape;
    if (placeholders(saved.name) > saved.shape.size())
      throw DamagedCheckpoint(
          fmt::format("'{}': tensor '{}': expected a dimension for each "
                      "placeholder, got shape {}",
                      checkpoint.folder(), saved.name, shapeText(saved.shape)));
    HubTensor tensor{&saved, storedTensors(parameter, -1),
                     typeBytes(summary.type) * elementCount(parameter)};
    if (shards == 0 || inShard + tensor.bytes > form.shardBytes) {
      ++shards;
      inShard = 0;
    }
    inShard += tensor.bytes;
    tensor.shard = shards - 1;
    summary.bytes += tensor.bytes;
    summary.tensors += static_cast<int64_t>(tensor.stored.names.size());
    tensors.push_back(std::move(tensor));
  }
  summary.files = static_cast<int64_t>(shards);
}

std::string HubWriter::shardName(size_t shard) const {
  return shards == 1 ? "model.safetensors"
                     : fmt::format("model-{:05}-of-{:05}.safetensors",
                                   shard + 1, shards);
}

void HubWriter::writeShard(const fs::path &place, size_t shard) {
  std::map<std::string, TensorForm> forms;
  for (const HubTensor &tensor : tensors)
    if (tensor.shard == shard)
      for (const std::string &name : tensor.stored.names)
        forms[name] = {summary.type, tensor.stored.shape};
  SafetensorsWriter writer((place / shardName(shard)).string(), forms);
  for (const HubTensor &tensor : tensors)
    if (tensor.shard == shard)
      writeTensor(writer, tensor);
  writer.commit();
}

void HubWriter::writeTensor(SafetensorsWriter &writer,
                            const HubTensor &tensor) {
  const SavedTensor &saved = *tensor.saved;
  int64_t count = tensor.bytes / typeBytes(summary.type);
  auto whole =
      std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
  readPart(checkpoint, saved, wholeBox(saved.shape),
           reinterpret_cast<char *>(whole.get()));
  auto *bytes = reinterpret_cast<char *>(whole.get());
  if (summary.type == "BF16") // in place: element i ends before element i + 1
    for (int64_t i = 0; i < count; ++i) {
      uint16_t narrow = toBf16(whole[i]);
      std::memcpy(bytes + 2 * i, &narrow, sizeof narrow);
    }
  int64_t each =
      tensor.bytes / static_cast<int64_t>(tensor.stored.names.size());
  for (size_t i = 0; i < tensor.stored.names.size(); ++i)
    writer.write(tensor.stored.names[i],
                 bytes + static_cast<int64_t>(i) * each);
}

void HubWriter::writeIndex(const fs::path &place) const {
  ordered_json map = ordered_json::object();
  for (const HubTensor &tensor : tensors)
    for (const std::string &name : tensor.stored.names)
      map[name] = shardName(tensor.shard);
  ordered_json index = {{"metadata", {{"total_size", summary.bytes}}},
                        {"weight_map", map}};
  writeFile((place / "model.safetensors.index.json").string(),
            {jsonText(index, 2) + "\n"});
}

void HubWriter::writeConfig(const fs::path &place) const {
  const char *type = summary.type == "BF16" ? "bfloat16" : "float32";
  ordered_json written = config;
  written[typeKey] = type;
  written.erase("quantization_config"); // describes the weights that were read
  std::string text = written == config ? checkpoint.manifest().config
                                       : jsonText(written, 2) + "\n";
  writeFile((place / "config.json").string(), {text});
}

void HubWriter::copyFiles(const fs::path &place) {
  for (const char *name : kCarriedFiles) {
    std::error_code error;
    fs::path from = fs::path(form.model) / name;
    if (!fs::is_regular_file(from, error)) // links of a hub's cache included
      continue;
    if (!fs::copy_file(from, place / name, error))
      throw RunError(
          fmt::format("cannot copy '{}': {}", from.string(), error.message()));
    summary.copied.push_back(name);
  }
}

/// A folder that becomes `path` when it is committed, and is removed when it is
/// not.
class PendingFolder {
public:
  explicit PendingFolder(const fs::path &path)
      : path(path),
        temporary(path.string() + fmt::format(".{}.part", getpid())) {
    std::error_code error;
    if (fs::exists(path, error) &&
        !(fs::is_directory(path, error) && fs::is_empty(path, error)))
      throw InputError(fmt::format(
          "'{}': expected no such folder, or an empty one", path.string()));
    if (!fs::create_directory(temporary, error))
      throw InputError(fmt::format("cannot create '{}': {}", path.string(),
                                   error.message()));
  }
  ~PendingFolder() {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  }

  const fs::path &place() const { return temporary; }
  void commit() {
    std::error_code error;
    fs::rename(temporary, path, error); // also onto an empty folder
    if (error)
      throw RunError(fmt::format("cannot rename '{}' to '{}': {}",
                                 temporary.string(), path.string(),
                                 error.message()));
  }

private:
  fs::path path, temporary;
};

} // namespace

HubSummary writeHubFolder(Checkpoint &checkpoint, const std::string &folder,
                          const HubForm &form) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) // a slash at the end
    path = path.parent_path();
  if (fs::exists(path)) // a link to an empty folder stays
    path = fs::canonical(path);
  PendingFolder pending(path);
  HubSummary summary = HubWriter(checkpoint, form).write(pending.place());
  pending.commit();
  return summary;
}

} // namespace rota
