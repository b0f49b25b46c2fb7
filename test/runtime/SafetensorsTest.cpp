// SPDX-License-Identifier: Apache-2.0
//
// Weight files: round trips, and headers that are wrong.
#include "runtime/Error.h"
#include "runtime/checkpoint/Weights.h"
#include "runtime/program/Convert.h"
#include "runtime/program/Part.h"
#include "runtime/program/TensorNames.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace rota;
using namespace rota::test;
using testing::TestWithParam;

namespace {

std::string lengthBytes(uint64_t length) {
  return std::string(reinterpret_cast<const char *>(&length), 8);
}

std::string fileOf(const std::string &header, int64_t dataBytes) {
  return lengthBytes(header.size()) + header + std::string(dataBytes, '\0');
}

std::string openingError(const std::string &bytes) {
  TemporaryFolder folder;
  std::string path = folder.write("x.safetensors", bytes);
  return messageOf<InputError>([&] { SafetensorsFile file(path); });
}

Program oneParameter() {
  Program program;
  Parameter p;
  p.name = "layers.{layer}.w";
  p.shape = {2, 2};
  p.layers = {0, 3};
  program.parameters = {p};
  return program;
}

} // namespace

TEST(Safetensors, WhatIsWrittenIsRead) {
  TemporaryFolder folder;
  std::vector<float> a = {1, 2, 3, 4, 5, 6};
  std::vector<uint16_t> b = {toBf16(1.5f), toBf16(-2.0f)};
  double c = 0.25;
  std::map<std::string, TensorView> tensors = {
      {"a", {"F32", {2, 3}, reinterpret_cast<char *>(a.data()), 24}},
      {"b", {"BF16", {2}, reinterpret_cast<char *>(b.data()), 4}},
      {"c", {"F64", {}, reinterpret_cast<char *>(&c), 8}}};
  writeSafetensors(folder.path("x.safetensors"), tensors);
  EXPECT_EQ(folder.count(), 1);
  SafetensorsFile file(folder.path("x.safetensors"));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors().at("a").shape, (std::vector<int64_t>{2, 3}));
  float out[6];
  readFloats(file.tensors().at("a"), 1, 5, out);
  EXPECT_EQ(out[3], 5.0f);
  readFloats(file.tensors().at("b"), 0, 2, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.0f);
  readFloats(file.tensors().at("c"), 0, 1, out);
  EXPECT_EQ(out[0], 0.25f);
}

struct Broken {
  const char *name;
  std::string bytes;
  std::string message;
};

class BrokenHeader : public TestWithParam<Broken> {};

TEST_P(BrokenHeader, IsRefusedWithAMessage) {
  std::string error = openingError(GetParam().bytes);
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
}

static const std::string kFourFloats =
    R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";

INSTANTIATE_TEST_SUITE_P(
    All, BrokenHeader,
    testing::Values(
        Broken{"empty", "",
               "expected at least 8 bytes of a safetensors file, "
               "got 0"},
        Broken{"huge", lengthBytes(UINT64_MAX) + "{}",
               "expected a header of at most 100000000 bytes, got "
               "18446744073709551615"},
        Broken{"longerThanFile", lengthBytes(1000) + "{}",
               "truncated: the header says 1000 bytes, 2 follow"},
        Broken{"notJson", fileOf("{\"a\":", 0),
               "the header of 5 bytes is not a JSON object"},
        Broken{"list", fileOf("[]", 0), "is not a JSON object"},
        Broken{"noShape", fileOf(R"({"a":{"dtype":"F32"}})", 0),
               "tensor 'a': expected dtype, shape and data_offsets"},
        Broken{"negative",
               fileOf(R"({"a":{"dtype":"F32","shape":[-1],)"
                      R"("data_offsets":[0,4]}})",
                      4),
               "tensor 'a': expected dtype, shape and data_offsets"},
        Broken{"fraction",
               fileOf(R"({"a":{"dtype":"F32","shape":[1.5],)"
                      R"("data_offsets":[0,6]}})",
                      6),
               "tensor 'a': expected dtype, shape and data_offsets"},
        Broken{"unknownType",
               fileOf(R"({"a":{"dtype":"F33","shape":[1],)"
                      R"("data_offsets":[0,4]}})",
                      4),
               "tensor 'a': unknown dtype 'F33'"},
        Broken{"truncatedData", fileOf(kFourFloats, 15),
               "tensor 'a': expected offsets within 15 bytes of data, got [0, "
               "16]"},
        Broken{"trailingData", fileOf(kFourFloats, 17),
               "expected 16 bytes of data, got 17"},
        Broken{"reversed",
               fileOf(R"({"a":{"dtype":"F32","shape":[0],)"
                      R"("data_offsets":[4,0]}})",
                      4),
               "got [4, 0]"},
        Broken{"lyingShape",
               fileOf(R"({"a":{"dtype":"F32","shape":[3,2],)"
                      R"("data_offsets":[0,16]}})",
                      16),
               "F32 of shape [3, 2] takes 24 bytes, its offsets [0, 16] hold "
               "16"},
        Broken{"overflow",
               fileOf(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],)"
                      R"("data_offsets":[0,0]}})",
                      0),
               "takes too many bytes"},
        Broken{
            "overlap",
            fileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                   R"("b":{"dtype":"F32","shape":[2],)"
                   R"("data_offsets":[4,12]}})",
                   12),
            "tensors 'a' and 'b' overlap"},
        Broken{
            "hole",
            fileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"F32","shape":[1],)"
                   R"("data_offsets":[8,12]}})",
                   12),
            "bytes 4 to 8 belong to no tensor"}),
    [](const auto &info) { return info.param.name; });

TEST(Safetensors, EveryTruncationOfAGoodFileIsRefused) {
  std::string good = fileOf(kFourFloats, 16);
  EXPECT_EQ(openingError(good), "(no exception)");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(openingError(good.substr(0, size)), "(no exception)") << size;
}

TEST(Safetensors, AFolderOrAMissingFileIsRefused) {
  TemporaryFolder folder;
  EXPECT_NE(messageOf<InputError>([&] {
              SafetensorsFile f(folder.path("no"));
            }).find("cannot open: No such file"),
            std::string::npos);
  EXPECT_NE(messageOf<InputError>([&] {
              SafetensorsFile f(folder.path(""));
            }).find("expected a regular file"),
            std::string::npos);
}

TEST(Convert, Bf16RoundsToNearestEven) {
  EXPECT_EQ(toBf16(1.0f), 0x3F80);
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f), 0x3F80);            // tie: to even
  EXPECT_EQ(toBf16(1.0f + 3 * 0x1p-8f), 0x3F82);        // tie: to even
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81); // above the tie
  EXPECT_EQ(fromBf16(toBf16(-INFINITY)), -INFINITY);
  EXPECT_TRUE(std::isnan(fromBf16(toBf16(NAN))));
}

TEST(Convert, HalfPrecision) {
  EXPECT_EQ(fromF16(0x3C00), 1.0f);
  EXPECT_EQ(fromF16(0xC100), -2.5f);
  EXPECT_EQ(fromF16(0x0001), 0x1p-24f); // the least subnormal number
  EXPECT_EQ(fromF16(0x83FF), -1023 * 0x1p-24f);
  EXPECT_EQ(fromF16(0x7BFF), 65504.0f);
  EXPECT_EQ(fromF16(0x7C00), INFINITY);
  EXPECT_TRUE(std::isnan(fromF16(0x7E00)));
}

TEST(Weights, ReadsAFolderAFileAndAnIndex) {
  TemporaryFolder folder;
  float values[4] = {1, 2, 3, 4};
  TensorView view{"F32", {2, 2}, reinterpret_cast<char *>(values), 16};
  Program program = oneParameter();
  writeSafetensors(folder.path("model.safetensors"),
                   {{"layers.0.w", view}, {"layers.3.w", view}, {"x", view}});
  for (std::string path : {folder.path("model.safetensors"), folder.path("")}) {
    Weights weights(path, program);
    float read[4];
    weights.find(program.parameters[0], 3)->readFloats(0, 4, read);
    EXPECT_TRUE(std::equal(values, values + 4, read));
    EXPECT_EQ(weights.unused(), std::vector<std::string>{"x"});
  }
  writeSafetensors(folder.path("1.safetensors"), {{"layers.0.w", view}});
  writeSafetensors(folder.path("2.safetensors"), {{"layers.3.w", view}});
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"layers.0.w":"1.safetensors",)"
               R"("layers.3.w":"2.safetensors"}})");
  Weights weights(folder.path(""), program);
  EXPECT_TRUE(weights.unused().empty());
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"../b"}})");
  EXPECT_NE(messageOf<InputError>([&] {
              Weights w(folder.path(""), program);
            }).find("expected the name of a file beside it for 'a'"),
            std::string::npos);
}

TEST(Weights, StacksTensorsThatFilesHoldApart) {
  TemporaryFolder folder;
  Program program;
  Parameter p;
  p.name = "layers.{layer}.{group}.{expert}.w";
  p.shape = {2, 3, 2};
  p.layers = {4};
  program.parameters = {p};
  EXPECT_EQ(namedDimensions(p), 2u);
  EXPECT_EQ(tensorName(p, 4), "layers.4.{group}.{expert}.w");
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0f);
  std::map<std::string, TensorView> tensors;
  std::vector<std::string> names = storedTensors(p, 4).names;
  EXPECT_EQ(names[4], "layers.4.1.1.w");
  for (size_t i = 0; i < names.size(); ++i)
    tensors[names[i]] = {
        "F32", {2}, reinterpret_cast<char *>(&values[2 * i]), 8};
  std::string path = folder.path("model.safetensors");
  writeSafetensors(path, tensors);
  float read[7];
  Weights(path, program).find(p, 4)->readFloats(3, 10, read);
  EXPECT_TRUE(std::equal(read, read + 7, values.begin() + 3));
  tensors.erase("layers.4.1.0.w");
  writeSafetensors(path, tensors);
  EXPECT_NE(messageOf<InputError>([&] {
              Weights w(path, program);
            }).find("no tensor 'layers.4.1.0.w'"),
            std::string::npos);
}

// Expert 1 of 2, columns 1 and 2 of 3.
TEST(Weights, JoinedParametersReadTheirRange) {
  TemporaryFolder folder;
  Program program;
  Parameter first, second;
  first.name = "layers.{layer}.first";
  first.shape = {2, 2, 1};
  first.layers = second.layers = {4};
  first.joined = {"layers.{layer}.{expert}.w", 2, 0, 3};
  second.name = "layers.{layer}.second";
  second.shape = {2, 2, 2};
  second.joined = {"layers.{layer}.{expert}.w", 2, 1, 3};
  program.parameters = {first, second};
  EXPECT_EQ(tensorName(second, 4), "layers.4.{expert}.w");
  EXPECT_EQ(storedTensors(first, 4).names, storedTensors(second, 4).names);
  EXPECT_EQ(storedTensors(second, 4).shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0f);
  std::map<std::string, TensorView> tensors;
  for (size_t i : {0, 1})
    tensors[storedTensors(second, 4).names[i]] = {
        "F32", {2, 3}, reinterpret_cast<char *>(&values[6 * i]), 24};
  std::string path = folder.path("model.safetensors");
  writeSafetensors(path, tensors);
  Weights weights(path, program);
  EXPECT_TRUE(weights.unused().empty());
  std::vector<float> read(8);
  Part all = optimizerPart(second, {}, {});
  forEachRun(all, 0, 8, [&](int64_t whole, int64_t at, int64_t count) {
    weights.find(second, 4)->readFloats(whole, whole + count, &read[at]);
  });
  EXPECT_EQ(read, (std::vector<float>{1, 2, 4, 5, 7, 8, 10, 11}));
}

TEST(Weights, NamesWhatIsMissingOrDoesNotFit) {
  TemporaryFolder folder;
  std::string path = folder.path("model.safetensors");
  float values[4] = {1, 2, 3, 4};
  TensorView good{"F32", {2, 2}, reinterpret_cast<char *>(values), 16};
  TensorView flat{"F32", {4}, reinterpret_cast<char *>(values), 16};
  TensorView whole{"I32", {2, 2}, reinterpret_cast<char *>(values), 16};
  Program program = oneParameter();
  auto error = [&](const std::map<std::string, TensorView> &tensors) {
    writeSafetensors(path, tensors);
    return messageOf<InputError>([&] { Weights w(path, program); });
  };
  EXPECT_NE(error({{"layers.0.w", good}}).find("no tensor 'layers.3.w'"),
            std::string::npos);
  EXPECT_NE(error({{"layers.0.w", good}, {"layers.3.w", flat}})
                .find("'layers.3.w': expected shape [2, 2], got [4]"),
            std::string::npos);
  EXPECT_NE(error({{"layers.0.w", good}, {"layers.3.w", whole}})
                .find("expected F32, F16, BF16, or F8_E4M3 with "
                      "'layers.3.w_scale_inv' beside it, got I32"),
            std::string::npos);
}
