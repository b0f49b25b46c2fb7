// SPDX-License-Identifier: Apache-2.0
//
// Parts of batches of each kind, and batches of random inputs.
#include "runtime/Error.h"
#include "runtime/data/WholeBatches.h"
#include "test/runtime/data/BatchCase.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

/// Parts over two axes of the microbatch of four sequences that begins with
/// sequence 12.
template <typename T>
static std::vector<T> fillParts(const Batches &batches, const DataForm &form,
                                bool target) {
  std::vector<MeshAxis> mesh = {{"data", 2}, {"context", 3}};
  std::vector<T> all(form.elements());
  for (int64_t data = 0; data < 2; ++data)
    for (int64_t context = 0; context < 3; ++context) {
      Part part = partOf(form.shape, {{0}, {1}}, mesh, {data, context});
      std::vector<T> one(part.elements());
      Destination out{part, reinterpret_cast<char *>(one.data())};
      batches.fill(Split::Train, 12, target ? Destination() : out,
                   target ? out : Destination());
      forEachRun(part, 0, part.elements(),
                 [&](int64_t whole, int64_t inPart, int64_t count) {
                   std::copy_n(&one[inPart], count, &all[whole]);
                 });
    }
  return all;
}

TEST(Batches, PartsMakeTheWhole) {
  TemporaryFolder folder;
  Program program = tokenProgram(4, 12, 2);
  TokenBatches tokens(program, {ramp(folder, 5000)}, {});
  for (bool target : {false, true}) {
    std::vector<int32_t> both = fill(tokens, program, Split::Train, 1, target);
    EXPECT_EQ(fillParts<int32_t>(tokens, program.input, target),
              std::vector<int32_t>(both.begin() + 48, both.end()));
  }
  program.vocabulary = 0;
  program.input = program.target = {ElementType::F32, {4, 12, 5}};
  NormalBatches normal(program, 1);
  std::vector<float> whole(program.input.elements());
  normal.fill(Split::Train, 12,
              {partOf(program.input.shape, {}, {}, {}),
               reinterpret_cast<char *>(whole.data())},
              {});
  EXPECT_EQ(fillParts<float>(normal, program.input, false), whole);
  std::vector<float> given(2 * whole.size());
  std::copy(whole.begin(), whole.end(), given.begin() + whole.size());
  TensorView view{"F32",
                  {8, 12, 5},
                  reinterpret_cast<char *>(given.data()),
                  static_cast<int64_t>(4 * given.size())};
  writeSafetensors(folder.path("b"), {{"inputs", view}, {"targets", view}});
  FixedBatch fixed(program, SafetensorsFile(folder.path("b")));
  EXPECT_EQ(fillParts<float>(fixed, program.input, true), whole);
}

/// Sequences 8 to 11, from batches of 4 and of 2.
TEST(NormalBatches, SequencesDependOnTheirNumberAlone) {
  std::vector<std::vector<float>> results;
  for (auto [sequences, microbatches] :
       {std::pair(4, 1), std::pair(2, 2), std::pair(2, 1)}) {
    Program program;
    program.microbatches = microbatches;
    program.input = program.target = {ElementType::F32, {sequences, 3, 5}};
    std::vector<float> all;
    for (int64_t m = 0; m < 4 / sequences; ++m) {
      std::vector<float> one(program.input.elements());
      NormalBatches(program, 1)
          .fill(Split::Train, 8 + m * program.input.shape[0],
                {partOf(program.input.shape, {}, {}, {}),
                 reinterpret_cast<char *>(one.data())},
                {});
      all.insert(all.end(), one.begin(), one.end());
    }
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

/// 99 targets in batches of 32: the last one has 3.
TEST(WholeBatches, TakeEachTargetOnceAndPadTheLastBatch) {
  TemporaryFolder folder;
  Program program = tokenProgram(2, 8, 2, 10000);
  auto open = [&](uint32_t count) {
    std::string path = positions(folder, "t" + std::to_string(count), count);
    return WholeBatches(program,
                        Tokens({path}, TokenType::Uint32, {10000, 10000}));
  };
  WholeBatches batches = open(100);
  ASSERT_EQ(batches.batches(), 4);
  int32_t next = 1;
  for (int64_t batch = 0; batch < 4; ++batch) {
    std::vector<int32_t> in =
        fill(batches, program, Split::Validation, batch, false);
    std::vector<int32_t> out =
        fill(batches, program, Split::Validation, batch, true);
    for (size_t i = 0; i < in.size(); ++i, ++next) {
      EXPECT_EQ(out[i], next < 100 ? next : -1);
      EXPECT_EQ(in[i], next < 100 ? next - 1 : 0);
    }
  }
  EXPECT_EQ(open(97).batches(), 3);
  EXPECT_EQ(open(98).batches(), 4);
  EXPECT_EQ(open(2).batches(), 1);
  EXPECT_EQ(messageOf<InputError>([&] { open(1); }),
            "the data is shorter than a token and its target: expected at "
            "least 2 tokens, got 1");
}

/// The data ends within the second of the four sequences of a microbatch.
TEST(WholeBatches, PadPartsAsTheWhole) {
  TemporaryFolder folder;
  Program program = tokenProgram(4, 12, 2, 10000);
  std::string path = positions(folder, "t", 13 * 12 + 6);
  WholeBatches batches(program,
                       Tokens({path}, TokenType::Uint32, {10000, 10000}));
  for (bool target : {false, true}) {
    std::vector<int32_t> both =
        fill(batches, program, Split::Validation, 1, target);
    EXPECT_EQ(fillParts<int32_t>(batches, program.input, target),
              std::vector<int32_t>(both.begin() + 48, both.end()));
    EXPECT_EQ(both[48 + 12 + 4], target ? 161 : 160);
    EXPECT_EQ(both[48 + 12 + 5], target ? -1 : 0);
  }
}

TEST(FixedBatch, TargetsThatDoNotCountAreNegative) {
  TemporaryFolder folder;
  Program program = tokenProgram(1, 3, 2);
  std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int64_t> mask = {1, 0, 5, 0, 0, -1};
  auto write = [&](std::vector<int64_t> shape, const char *type) {
    writeSafetensors(
        folder.path("b"),
        {{"tokens",
          {"I32", {2, 4}, reinterpret_cast<char *>(tokens.data()), 32}},
         {"mask", {type, shape, reinterpret_cast<char *>(mask.data()), 48}}});
    return FixedBatch(program, SafetensorsFile(folder.path("b")));
  };
  FixedBatch fixed = write({2, 3}, "I64");
  EXPECT_EQ(fill(fixed, program, Split::Train, 0, false),
            (std::vector<int32_t>{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(fill(fixed, program, Split::Train, 0, true),
            (std::vector<int32_t>{2, -1, 4, -1, -1, 8}));
  auto refuses = [&](std::vector<int64_t> shape, const char *type,
                     const char *expected) {
    try {
      write(std::move(shape), type);
      ADD_FAILURE() << "expected " << expected;
    } catch (const InputError &error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos)
          << error.what();
    }
  };
  refuses({3, 2}, "I64", "tensor 'mask': expected shape [2, 3], got [3, 2]");
  refuses({2, 3}, "F64", "tensor 'mask': expected I32 or I64, got F64");
  program.vocabulary = 0;
  refuses({2, 3}, "I64", "expected 'mask' beside 'tokens'");
}
