// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints as folders of a model hub.
#include "runtime/checkpoint/HubFolder.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/Convert.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/checkpoint/SavedFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace rota;
using namespace rota::test;

namespace {

std::string floats(std::vector<float> values) {
  return {reinterpret_cast<char *>(values.data()), 4 * values.size()};
}

/// Two experts in one tensor, a norm, and a state of it.
struct Model {
  TemporaryFolder folder;
  SavedFolder saved{folder.path("step-0000000005"), 2};
  std::mt19937 random{3};

  explicit Model(const std::string &config) {
    add("layers.0.experts.{expert}.up", {2, 1, 3},
        {1, 2, 3.0009765625f, 4, 5, 6});
    add("norm", {2}, {7, 8});
    add("norm/first_moment", {2}, {9, 9});
    saved.manifest.config = config;
    saved.write();
  }
  void add(const std::string &name, std::vector<int64_t> shape,
           std::vector<float> values) {
    saved.add(name, "F32", shape, floats(std::move(values)),
              randomPieces(shape, random));
  }
  HubSummary write(const HubForm &form = {},
                   const std::optional<std::string> &type = std::nullopt) {
    Checkpoint checkpoint(folder.path("step-0000000005"));
    HubContents contents = contentsOf(checkpoint, type);
    return writeHubFolder(contents, folder.path("hub"), form);
  }
  std::vector<float> tensor(const std::string &file, const std::string &name) {
    SafetensorsFile opened(folder.path("hub/" + file));
    const TensorView &view = opened.tensors().at(name);
    std::vector<float> values(view.elements());
    readFloats(view, 0, view.elements(), values.data());
    return values;
  }
};

} // namespace

TEST(HubFolder, SplitsPlaceholdersAndLeavesStatesOut) {
  Model model(R"({"hidden_size": 3, "dtype": "float32"})");
  HubSummary summary = model.write();
  EXPECT_EQ(summary.tensors, 3);
  EXPECT_EQ(summary.bytes, 8 * 4);
  EXPECT_EQ(summary.files, 1);
  EXPECT_EQ(model.tensor("model.safetensors", "layers.0.experts.0.up"),
            (std::vector<float>{1, 2, 3.0009765625f}));
  EXPECT_EQ(model.tensor("model.safetensors", "layers.0.experts.1.up"),
            (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(model.tensor("model.safetensors", "norm"),
            (std::vector<float>{7, 8}));
  // A configuration that says the type already is kept to the byte.
  EXPECT_EQ(model.folder.read("hub/config.json"),
            R"({"hidden_size": 3, "dtype": "float32"})");
  // The folder beside the checkpoint, and nothing left behind.
  EXPECT_EQ(model.folder.count(), 2);
}

TEST(HubFolder, TakesTheTypeOfTheConfigurationOrTheUser) {
  for (bool isAsked : {false, true}) {
    Model model(isAsked ? "{}" : R"({"torch_dtype": "bfloat16"})");
    std::optional<std::string> type;
    if (isAsked)
      type = "BF16";
    EXPECT_EQ(model.write({}, type).bytes, 8 * 2);
    EXPECT_EQ(model.tensor("model.safetensors", "layers.0.experts.0.up"),
              (std::vector<float>{1, 2, 3})); // rounded
    EXPECT_EQ(nlohmann::json::parse(model.folder.read("hub/config.json")),
              (nlohmann::json{{"torch_dtype", "bfloat16"}}));
  }
}

TEST(HubFolder, ShardsHaveAnIndex) {
  Model model("{}");
  HubForm form;
  form.shardBytes = 12;
  EXPECT_EQ(model.write(form).files, 2);
  nlohmann::json index = nlohmann::json::parse(
      model.folder.read("hub/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 32);
  EXPECT_EQ(index["weight_map"],
            (nlohmann::json{
                {"layers.0.experts.0.up", "model-00001-of-00002.safetensors"},
                {"layers.0.experts.1.up", "model-00001-of-00002.safetensors"},
                {"norm", "model-00002-of-00002.safetensors"}}));
  EXPECT_EQ(model.tensor("model-00002-of-00002.safetensors", "norm"),
            (std::vector<float>{7, 8}));
}

TEST(HubFolder, RefusesAFolderWithFilesAndLeavesNoneBehind) {
  Model model("{}");
  std::filesystem::create_directory(model.folder.path("hub"));
  model.write(); // an empty folder is taken
  EXPECT_EQ(messageOf<InputError>([&] { model.write(); }),
            "'" + model.folder.path("hub") +
                "': expected no such folder, or an empty one");
  EXPECT_EQ(model.folder.count(), 2);
  Model damaged("{}");
  damaged.folder.write("step-0000000005/rank-0.safetensors",
                       std::string(damaged.saved.manifest.files[0].bytes, 'x'));
  EXPECT_THROW(damaged.write(), DamagedCheckpoint);
  EXPECT_EQ(damaged.folder.count(), 1);
}
