// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/HubFolder.h"
#include "runtime/program/Convert.h"
#include "runtime/program/JsonText.h"

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

class HubWriter {
public:
  HubWriter(HubContents &contents, const HubForm &form)
      : contents(contents), form(form) {}

  HubSummary write(const fs::path &place);

private:
  void assignShards();
  void writeConfig(const fs::path &place) const;
  void copyFiles(const fs::path &place);
  void writeShard(const fs::path &place, size_t shard);
  void writeIndex(const fs::path &place) const;
  std::string shardName(size_t shard) const;

  HubContents &contents;
  const HubForm &form;
  std::vector<size_t> shardOf; // by tensor
  size_t shards = 0;
  HubSummary summary;
};

HubSummary HubWriter::write(const fs::path &place) {
  std::error_code error;
  if (!form.model.empty() && !fs::is_directory(form.model, error))
    throw InputError(fmt::format("'{}': expected a hub folder, whose other "
                                 "files are carried on",
                                 form.model));
  summary.hasConfig = !contents.configText.empty();
  summary.type = contents.type;
  assignShards();
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

void HubWriter::assignShards() {
  int64_t inShard = 0;
  for (const WrittenTensor &tensor : contents.tensors) {
    if (shards == 0 || inShard + tensor.bytes > form.shardBytes) {
      ++shards;
      inShard = 0;
    }
    inShard += tensor.bytes;
    shardOf.push_back(shards - 1);
    summary.bytes += tensor.bytes;
    summary.tensors += static_cast<int64_t>(tensor.names.size());
  }
  summary.files = static_cast<int64_t>(shards);
}

std::string HubWriter::shardName(size_t shard) const {
  return shards == 1 ? contents.stem + ".safetensors"
                     : fmt::format("{}-{:05}-of-{:05}.safetensors",
                                   contents.stem, shard + 1, shards);
}

/// The bytes of the tensor, in `whole` unless the file has them as they are.
static const char *bytesOf(const WrittenTensor &tensor,
                           std::unique_ptr<float[]> &whole) {
  if (tensor.raw)
    return tensor.raw;
  int64_t count = tensor.bytes / typeBytes(tensor.type);
  whole = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
  tensor.read(whole.get());
  auto *bytes = reinterpret_cast<char *>(whole.get());
  if (tensor.type == "BF16") // in place: element i ends before element i + 1
    for (int64_t i = 0; i < count; ++i) {
      uint16_t narrow = toBf16(whole[i]);
      std::memcpy(bytes + 2 * i, &narrow, sizeof narrow);
    }
  return bytes;
}

static void writeTensor(SafetensorsWriter &writer,
                        const WrittenTensor &tensor) {
  std::unique_ptr<float[]> whole;
  const char *bytes = bytesOf(tensor, whole);
  int64_t each = tensor.bytes / static_cast<int64_t>(tensor.names.size());
  for (size_t i = 0; i < tensor.names.size(); ++i)
    writer.write(tensor.names[i], bytes + static_cast<int64_t>(i) * each);
}

void HubWriter::writeShard(const fs::path &place, size_t shard) {
  std::map<std::string, TensorForm> forms;
  for (size_t i = 0; i < shardOf.size(); ++i)
    if (shardOf[i] == shard)
      for (const std::string &name : contents.tensors[i].names)
        forms[name] = {contents.tensors[i].type, contents.tensors[i].shape};
  SafetensorsWriter writer((place / shardName(shard)).string(), forms);
  for (size_t i = 0; i < shardOf.size(); ++i)
    if (shardOf[i] == shard)
      writeTensor(writer, contents.tensors[i]);
  writer.commit();
}

void HubWriter::writeIndex(const fs::path &place) const {
  ordered_json map = ordered_json::object();
  for (size_t i = 0; i < shardOf.size(); ++i)
    for (const std::string &name : contents.tensors[i].names)
      map[name] = shardName(shardOf[i]);
  ordered_json index = {{"metadata", {{"total_size", summary.bytes}}},
                        {"weight_map", map}};
  writeFile((place / (contents.stem + ".safetensors.index.json")).string(),
            {jsonText(index, 2) + "\n"});
}

void HubWriter::writeConfig(const fs::path &place) const {
  ordered_json written = contents.config;
  if (!contents.keepsTypes)
    written[contents.typeKey] =
        contents.type == "BF16" ? "bfloat16" : "float32";
  written.erase("quantization_config"); // describes the weights that were read
  std::string text = written == contents.config ? contents.configText
                                                : jsonText(written, 2) + "\n";
  writeFile((place / contents.configFile).string(), {text});
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

HubSummary writeHubFolder(HubContents &contents, const std::string &folder,
                          const HubForm &form) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) // a slash at the end
    path = path.parent_path();
  std::error_code error;
  if (fs::path real = fs::canonical(path, error); !error)
    path = real; // a link to an empty folder stays
  PendingFolder pending(path);
  HubSummary summary = HubWriter(contents, form).write(pending.place());
  pending.commit();
  return summary;
}

} // namespace rota
