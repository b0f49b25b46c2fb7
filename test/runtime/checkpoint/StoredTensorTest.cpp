// SPDX-License-Identifier: Apache-2.0
//
// Quantized tensors in parts, and those that do not agree with their scales.
// Their numbers are compared with transformers in end-to-end/load.
#include "runtime/checkpoint/StoredTensor.h"
#include "runtime/Error.h"
#include "runtime/program/Convert.h"

#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <random>

using namespace rota;

namespace {

/// Tensors of random bytes by name.
class Views {
public:
  void add(const std::string &name, const std::string &type,
           std::vector<int64_t> shape) {
    TensorView view{.type = type, .shape = std::move(shape)};
    view.bytes = view.elements() * typeBytes(type);
    std::string &bytes = storage.emplace_back();
    for (int64_t i = 0; i < view.bytes; ++i) // below the NaNs of all types
      bytes += static_cast<char>(random() % 0x7F);
    view.data = bytes.data();
    views.emplace(name, view);
  }

  std::map<std::string, StoredTensor> tensors() const {
    return storedTensorsOf(views,
                           [](const std::string &name, const std::string &why) {
                             throw InputError(name + ": " + why);
                           });
  }
  std::string mistake() const {
    try {
      tensors();
    } catch (const InputError &error) {
      return error.what();
    }
    return "none";
  }

private:
  std::mt19937 random{7};
  std::deque<std::string> storage;
  std::map<std::string, TensorView> views;
};

std::vector<float> read(const StoredTensor &tensor, int64_t begin,
                        int64_t end) {
  std::vector<float> values(static_cast<size_t>(end - begin));
  readFloats(tensor, begin, end, values.data());
  return values;
}

/// Random parts are those of the whole.
void expectParts(const StoredTensor &tensor) {
  std::vector<float> whole = read(tensor, 0, tensor.elements());
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    int64_t begin = random() % (tensor.elements() + 1);
    int64_t end = begin + random() % (tensor.elements() - begin + 1);
    ASSERT_EQ(read(tensor, begin, end),
              std::vector<float>(whole.begin() + begin, whole.begin() + end))
        << begin << " to " << end;
  }
}

} // namespace

TEST(StoredTensor, PartsOfBlocks) {
  Views views;
  views.add("w", "F8_E4M3", {2, 130, 300});
  views.add("w_scale_inv", "F32", {2, 2, 3});
  auto tensors = views.tensors();
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors.at("w").blockRows, 128); // the last block has two rows
  EXPECT_EQ(tensors.at("w").blockColumns, 128);
  expectParts(tensors.at("w"));
}

TEST(StoredTensor, PartsOfMxfp4) {
  Views views;
  views.add("w_blocks", "U8", {3, 5, 2, 16});
  views.add("w_scales", "U8", {3, 5, 2});
  auto tensors = views.tensors();
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors.at("w").shape, (std::vector<int64_t>{3, 64, 5}));
  expectParts(tensors.at("w"));
}

TEST(StoredTensor, EveryE4m3) {
  EXPECT_EQ(fromE4m3(0x7E), 448.f);
  EXPECT_EQ(fromE4m3(0x01), 0x1p-9f);
  EXPECT_EQ(fromE4m3(0x38), 1.f);
  EXPECT_EQ(fromE4m3(0xB9), -1.125f);
  EXPECT_TRUE(std::isnan(fromE4m3(0x7F)) && std::isnan(fromE4m3(0xFF)));
}

TEST(StoredTensor, ScalesThatDoNotAgree) {
  Views rows, type, groups, twice, lone;
  rows.add("w", "F8_E4M3", {300, 4});
  rows.add("w_scale_inv", "F32", {7, 1});
  EXPECT_EQ(rows.mistake(), "w: expected scales of blocks of 128 x 128, got "
                            "those of shape [7, 1] for [300, 4]");
  type.add("w", "F8_E4M3", {4, 4});
  type.add("w_scale_inv", "U8", {1, 1});
  EXPECT_EQ(type.mistake(), "w: expected scales in F32, F16 or BF16, got U8");
  groups.add("w_blocks", "U8", {3, 5, 2, 16});
  groups.add("w_scales", "U8", {3, 5, 1});
  EXPECT_EQ(groups.mistake(),
            "w_blocks: expected blocks of shape [matrices, columns, groups, "
            "16] and a scale for each group, got [3, 5, 2, 16] and [3, 5, 1]");
  twice.add("w", "F32", {1, 32, 1});
  twice.add("w_blocks", "U8", {1, 1, 1, 16});
  twice.add("w_scales", "U8", {1, 1, 1});
  EXPECT_EQ(twice.mistake(),
            "w: expected one tensor, got another in blocks and scales");
  lone.add("w", "F8_E4M3", {4, 4});
  EXPECT_FALSE(lone.tensors().at("w").isFloat());
}
