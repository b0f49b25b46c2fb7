// SPDX-License-Identifier: Apache-2.0
//
// Token files and batches.
#include "runtime/Error.h"
#include "runtime/data/Batches.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <set>

using namespace rota;
using namespace rota::test;

namespace {

template <typename T> std::string bytesOf(std::vector<T> values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

Program tokenProgram(int64_t sequences, int64_t length, int64_t microbatches) {
  Program program;
  program.vocabulary = program.classes = 256;
  program.microbatches = microbatches;
  program.input = program.target = {ElementType::I32, {sequences, length}};
  return program;
}

/// A file of `count` bytes, byte i being i mod 251.
std::string ramp(const TemporaryFolder &folder, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes.push_back(static_cast<char>(i % 251));
  return folder.write("ramp", bytes);
}

std::vector<int32_t> fill(const Batches &batches, const Program &program,
                          Split split, int64_t batch, bool target) {
  std::vector<int32_t> all;
  for (int64_t m = 0; m < program.microbatches; ++m) {
    std::vector<int32_t> one(program.input.elements());
    Destination out{partOf(program.input.shape, {}, {}, {}),
                    reinterpret_cast<char *>(one.data())};
    batches.fill(split, batch, m, target ? Destination() : out,
                 target ? out : Destination());
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

} // namespace

TEST(Tokens, ReadsEachTypeAcrossFiles) {
  TemporaryFolder folder;
  int32_t out[4];
  Tokens bytes({folder.write("a", "\x01\xff"), folder.write("b", "xyz")},
               TokenType::Bytes, TokenBounds{256, 256});
  EXPECT_EQ(bytes.size(), 5);
  bytes.read(1, 4, out);
  EXPECT_EQ(std::vector<int32_t>(out, out + 4),
            (std::vector<int32_t>{255, 'x', 'y', 'z'}));
  Tokens narrow({folder.write("c", bytesOf<uint16_t>({1, 50000, 3}))},
                TokenType::Uint16, {50257, 50257});
  narrow.read(1, 2, out);
  EXPECT_EQ(out[0], 50000);
  Tokens wide({folder.write("d", bytesOf<uint32_t>({100000, 7}))},
              TokenType::Uint32, {128256, 128256});
  wide.read(0, 2, out);
  EXPECT_EQ(out[0], 100000);
  EXPECT_EQ(out[1], 7);
}

TEST(Tokens, RefusesTokensOutsideTheVocabulary) {
  TemporaryFolder folder;
  std::vector<uint16_t> values(70000, 5);
  values[69999] = 300;
  std::string path = folder.write("t", bytesOf(values));
  EXPECT_EQ(messageOf<InputError>(
                [&] { Tokens tokens({path}, TokenType::Uint16, {300, 300}); }),
            "'" + path +
                "': position 69999: expected a token below the vocabulary of "
                "300, got 300");
  Tokens fits({path}, TokenType::Uint16, {301, 301});
  EXPECT_EQ(fits.size(), 70000);
  EXPECT_EQ(messageOf<InputError>(
                [&] { Tokens tokens({path}, TokenType::Uint16, {400, 299}); }),
            "'" + path +
                "': position 69999: expected a token below the 299 classes of "
                "the loss, got 300");
}

TEST(Tokens, RefusesFilesThatCannotBeTokens) {
  TemporaryFolder folder;
  auto error = [&](const std::string &path, TokenType type) {
    return messageOf<InputError>(
        [&] { Tokens tokens({path}, type, {70000, 70000}); });
  };
  EXPECT_NE(error(folder.path("none"), TokenType::Bytes).find("No such file"),
            std::string::npos);
  EXPECT_NE(error(folder.write("e", ""), TokenType::Bytes).find("is empty"),
            std::string::npos);
  EXPECT_NE(error(folder.write("o", "abc"), TokenType::Uint16)
                .find("expected a multiple of 2 bytes, got 3"),
            std::string::npos);
  EXPECT_NE(
      error(folder.path(""), TokenType::Bytes).find("expected a regular file"),
      std::string::npos);
}

TEST(TokenBatches, TargetsFollowInputs) {
  TemporaryFolder folder;
  Program program = tokenProgram(2, 16, 3);
  TokenBatches batches(
      program,
      std::make_unique<Tokens>(std::vector<std::string>{ramp(folder, 5000)},
                               TokenType::Bytes, TokenBounds{256, 256}),
      0.1, 4, 1);
  std::vector<int32_t> in = fill(batches, program, Split::Train, 7, false);
  std::vector<int32_t> out = fill(batches, program, Split::Train, 7, true);
  std::set<int32_t> starts;
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(out[i], (in[i] + 1) % 251);
    if (i % 16 == 0)
      starts.insert(in[i]);
  }
  EXPECT_GT(starts.size(), 3u); // the crops differ
  EXPECT_NE(in, fill(batches, program, Split::Train, 8, false));
}

/// Parts over two axes are the whole.
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
      batches.fill(Split::Train, 1, 1, target ? Destination() : out,
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
  TokenBatches tokens(
      program,
      std::make_unique<Tokens>(std::vector<std::string>{ramp(folder, 5000)},
                               TokenType::Bytes, TokenBounds{256, 256}),
      0.1, 4, 1);
  for (bool target : {false, true}) {
    std::vector<int32_t> both = fill(tokens, program, Split::Train, 1, target);
    EXPECT_EQ(fillParts<int32_t>(tokens, program.input, target),
              std::vector<int32_t>(both.begin() + 48, both.end()));
  }
  program.vocabulary = 0;
  program.input = program.target = {ElementType::F32, {4, 12, 5}};
  NormalBatches normal(program, 1);
  std::vector<float> whole(program.input.elements());
  normal.fill(Split::Train, 1, 1,
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

TEST(TokenBatches, DoNotDependOnTheSplitIntoMicrobatches) {
  TemporaryFolder folder;
  std::string path = ramp(folder, 5000);
  std::vector<std::vector<int32_t>> results;
  for (int64_t microbatches : {1, 2, 6}) {
    Program program = tokenProgram(6 / microbatches, 16, microbatches);
    TokenBatches batches(
        program,
        std::make_unique<Tokens>(std::vector<std::string>{path},
                                 TokenType::Bytes, TokenBounds{256, 256}),
        0.1, 4, 1);
    results.push_back(fill(batches, program, Split::Train, 3, false));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(TokenBatches, TrainingAndValidationDoNotShareATokenAndReachTheEnds) {
  TemporaryFolder folder;
  // Training bytes are 'a', validation bytes 'b'.
  std::string text = std::string(90, 'a') + std::string(10, 'b');
  Program program = tokenProgram(4, 8, 2);
  TokenBatches batches(program,
                       std::make_unique<Tokens>(
                           std::vector<std::string>{folder.write("t", text)},
                           TokenType::Bytes, TokenBounds{256, 256}),
                       0.1, 3, 1);
  for (int64_t batch = 0; batch < 20; ++batch)
    for (int32_t token : fill(batches, program, Split::Train, batch, true))
      ASSERT_EQ(token, 'a');
  for (int64_t batch = 0; batch < 3; ++batch)
    for (int32_t token : fill(batches, program, Split::Validation, batch, true))
      ASSERT_EQ(token, 'b');
}

TEST(TokenBatches, RefusesDataShorterThanASequence) {
  TemporaryFolder folder;
  Program program = tokenProgram(1, 64, 1);
  auto error = [&](int64_t count, double fraction) {
    return messageOf<InputError>([&] {
      TokenBatches b(program,
                     std::make_unique<Tokens>(
                         std::vector<std::string>{ramp(folder, count)},
                         TokenType::Bytes, TokenBounds{256, 256}),
                     fraction, 1, 1);
    });
  };
  EXPECT_NE(error(64, 0.0).find("expected at least 65 tokens, got 64"),
            std::string::npos);
  EXPECT_EQ(error(65, 0.0), "(no exception)");
  EXPECT_NE(error(640, 0.1).find("validation part is shorter than a sequence "
                                 "and its last target: expected at least 65 "
                                 "tokens, got 64"),
            std::string::npos);
}

TEST(NormalBatches, DoNotDependOnTheSplitIntoMicrobatches) {
  std::vector<std::vector<float>> results;
  for (int64_t microbatches : {1, 2}) {
    Program program;
    program.microbatches = microbatches;
    program.input =
        program.target = {ElementType::F32, {4 / microbatches, 3, 5}};
    std::vector<float> all;
    for (int64_t m = 0; m < microbatches; ++m) {
      std::vector<float> one(program.input.elements());
      NormalBatches(program, 1)
          .fill(Split::Train, 2, m,
                {partOf(program.input.shape, {}, {}, {}),
                 reinterpret_cast<char *>(one.data())},
                {});
      all.insert(all.end(), one.begin(), one.end());
    }
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
}
