// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters in files: alone, merged, and of another model.
#include "runtime/checkpoint/AdapterContents.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/HubFolder.h"
#include "runtime/checkpoint/Weights.h"
#include "runtime/program/AdapterNames.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

TensorView viewOf(std::vector<float> &values, std::vector<int64_t> shape) {
  return {"F32", std::move(shape), reinterpret_cast<char *>(values.data()),
          static_cast<int64_t>(4 * values.size())};
}

/// A weight [2, 3] with an adapter of rank 1.
struct Files {
  TemporaryFolder folder;
  std::vector<float> w = {1, 2, 3, 4, 5, 6}, a = {1, 0, -1}, b = {2, 3};
  std::string name = std::string(kAdapterPrefix) + "layers.0.q.lora_";

  Files() {
    writeSafetensors(folder.path("model.safetensors"),
                     {{"layers.0.q.weight", viewOf(w, {2, 3})}});
    write({{name + "A.weight", viewOf(a, {1, 3})},
           {name + "B.weight", viewOf(b, {2, 1})}});
  }
  void write(const std::map<std::string, TensorView> &tensors) {
    writeSafetensors(folder.path(kAdapterFile), tensors);
  }
};

Parameter parameter(const std::string &name, std::vector<int64_t> shape) {
  Parameter p;
  p.name = "layers.{layer}.q." + name;
  p.shape = std::move(shape);
  p.layers = {0};
  return p;
}

Program program() {
  Program p;
  p.parameters = {parameter("weight", {2, 3}),
                  parameter("lora_A.weight", {1, 3}),
                  parameter("lora_B.weight", {2, 1})};
  return p;
}

/// The message of an error; empty: none was thrown.
template <typename Run> std::string errorOf(Run run) {
  try {
    run();
  } catch (const InputError &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST(Adapters, AreAddedToTheirWeights) {
  Files files;
  HubTensors hub(files.folder.path("model.safetensors"));
  HubTensors adapter(files.folder.path(kAdapterFile));
  HubContents contents = contentsOf(hub, std::nullopt);
  addAdapters(contents, adapter);
  ASSERT_EQ(contents.tensors.size(), 3u);
  mergeAdapters(contents, 0.5);
  ASSERT_EQ(contents.tensors.size(), 1u);
  std::vector<float> merged(6);
  contents.tensors[0].read(merged.data());
  EXPECT_EQ(merged, (std::vector<float>{2, 2, 2, 5.5, 5, 4.5}));
  EXPECT_EQ(contents.tensors[0].raw, nullptr);
}

TEST(Adapters, OfAnotherModelAreNotMerged) {
  Files files;
  auto merge = [&] {
    HubTensors hub(files.folder.path("model.safetensors"));
    HubTensors adapter(files.folder.path(kAdapterFile));
    HubContents contents = contentsOf(hub, std::nullopt);
    addAdapters(contents, adapter);
    mergeAdapters(contents, 1.0);
  };
  files.write({{files.name + "A.weight", viewOf(files.a, {1, 3})},
               {files.name + "B.weight", viewOf(files.w, {6, 1})}});
  EXPECT_EQ(errorOf(merge),
            "adapter of 'layers.0.q.weight': expected a weight to which the "
            "product of [6, 1] and [1, 3] adds, got [2, 3]");
  files.write({{files.name + "A.weight", viewOf(files.a, {1, 3})}});
  EXPECT_EQ(errorOf(merge),
            "adapter of 'layers.0.q.weight': expected "
            "'layers.0.q.lora_B.weight' beside 'layers.0.q.lora_A.weight'");
  files.write({{"layers.0.q.lora_A.weight", viewOf(files.a, {1, 3})}});
  EXPECT_NE(errorOf(merge).find("expected matrices base_model.model.*"),
            std::string::npos);
}

TEST(Adapters, AreWrittenUnderTheNamesOfPEFT) {
  Files files;
  HubTensors hub(files.folder.path("model.safetensors"));
  HubTensors adapter(files.folder.path(kAdapterFile));
  HubContents contents = contentsOf(hub, std::nullopt);
  addAdapters(contents, adapter);
  keepAdapters(contents, {1, 2.0, {"q"}, ""});
  writeHubFolder(contents, files.folder.path("written"), {});
  HubTensors written(files.folder.path("written") + "/" + kAdapterFile);
  ASSERT_EQ(written.tensors().size(), 2u);
  EXPECT_NE(written.find(files.name + "A.weight"), nullptr);
  EXPECT_EQ(contents.config["lora_alpha"], 2.0);
  EXPECT_EQ(contents.config["target_modules"], nlohmann::json({"q"}));
}

TEST(Adapters, BeginARunBesideItsWeights) {
  Files files;
  std::string model = files.folder.path("model.safetensors");
  Program p = program();
  Weights fresh(model, p);
  EXPECT_FALSE(fresh.find(p.parameters[1], 0));
  Weights weights(model, p, files.folder.path(""));
  float read[3];
  weights.find(p.parameters[1], 0)->readFloats(0, 3, read);
  EXPECT_TRUE(std::equal(read, read + 3, files.a.begin()));
  p.parameters[1].shape = {2, 3};
  EXPECT_NE(errorOf([&] {
              Weights(model, p, files.folder.path(""));
            }).find("expected shape [2, 3], got [1, 3]"),
            std::string::npos);
  p.parameters.resize(1);
  EXPECT_NE(errorOf([&] {
              Weights(model, p, files.folder.path(""));
            }).find("which has none of that name"),
            std::string::npos);
}
