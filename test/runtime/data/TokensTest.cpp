// SPDX-License-Identifier: Apache-2.0
//
// Token files: types, bounds, and files that change under the run.
#include "runtime/data/Tokens.h"
#include "runtime/Error.h"
#include "test/runtime/data/BatchCase.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

using namespace rota;
using namespace rota::test;

namespace {

std::vector<int32_t> read(const Tokens &tokens, int64_t position, int64_t count,
                          TokenRole role = TokenRole::Input) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  tokens.read(position, count, role, out.data());
  return out;
}

using Values = std::vector<int32_t>;

} // namespace

TEST(Tokens, ReadsEachTypeAcrossFiles) {
  TemporaryFolder folder;
  Tokens bytes({folder.write("a", "\x01\xff"), folder.write("b", "xyz")},
               std::nullopt, TokenBounds{256, 256});
  EXPECT_EQ(bytes.size(), 5);
  EXPECT_EQ(bytes.boundaries(), (std::vector<int64_t>{0, 2, 5}));
  EXPECT_EQ(read(bytes, 1, 4), (Values{255, 'x', 'y', 'z'}));
  auto one = [&](const std::string &text, TokenType type) {
    return read(Tokens({folder.write("c", text)}, type, {128256, 128256}), 1,
                2);
  };
  EXPECT_EQ(one(bytesOf<uint16_t>({1, 50000, 3}), TokenType::Uint16),
            (Values{50000, 3}));
  EXPECT_EQ(one(bytesOf<uint32_t>({1, 100000, 7}), TokenType::Uint32),
            (Values{100000, 7}));
  EXPECT_EQ(one(bytesOf<int32_t>({1, 100000, 7}), TokenType::Int32),
            (Values{100000, 7}));
  EXPECT_EQ(one(bytesOf<int64_t>({1, 100000, 7}), TokenType::Int64),
            (Values{100000, 7}));
}

TEST(Tokens, RefusesTokensOutsideTheVocabulary) {
  TemporaryFolder folder;
  std::vector<uint16_t> values(70000, 5);
  values[69999] = 300;
  std::string path = folder.write("t", bytesOf(values));
  auto error = [&](TokenBounds bounds) {
    return messageOf<InputError>(
        [&] { Tokens tokens({path}, TokenType::Uint16, bounds); });
  };
  EXPECT_EQ(error({300, 300}),
            "'" + path +
                "': position 69999: expected a token below the vocabulary of "
                "300, got 300");
  EXPECT_EQ(error({301, 301}), "(no exception)");
  EXPECT_EQ(error({400, 299}),
            "'" + path +
                "': position 69999: expected a token below the 299 classes of "
                "the loss, got 300");
  // A target that does not count needs no class.
  folder.write("t.mask", std::string(69999, '\1') + '\0');
  EXPECT_EQ(error({400, 299}), "(no exception)");
  std::string negative = folder.write("n", bytesOf<int32_t>({3, -2}));
  EXPECT_NE(
      messageOf<InputError>(
          [&] { Tokens tokens({negative}, TokenType::Int32, {300, 300}); })
          .find("position 1: expected a token below the vocabulary of 300, "
                "got -2"),
      std::string::npos);
}

/// A file of more than 64 MiB is checked where it is read. (This one takes no
/// room on the disk.)
TEST(Tokens, ChecksLargeFilesWhenTheyAreRead) {
  TemporaryFolder folder;
  std::string path = folder.write("large", bytesOf<uint32_t>({9, 8, 7, 600}));
  std::filesystem::resize_file(path, (64 << 20) + 4);
  Tokens tokens({path}, TokenType::Uint32, {600, 600});
  EXPECT_EQ(read(tokens, 0, 3), (Values{9, 8, 7}));
  EXPECT_EQ(read(tokens, 4, 2), (Values{0, 0}));
  EXPECT_EQ(messageOf<InputError>([&] { read(tokens, 2, 9); }),
            "'" + path +
                "': position 3: expected a token below the vocabulary of 600, "
                "got 600");
  std::filesystem::resize_file(path, 64 << 20);
  EXPECT_NE(messageOf<InputError>([&] {
              Tokens small({path}, TokenType::Uint32, {600, 600});
            }).find("position 3"),
            std::string::npos);
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
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const char *name : {"", "pipe"})
    EXPECT_NE(error(folder.path(name), TokenType::Bytes)
                  .find("expected a regular file"),
              std::string::npos);
}

/// A file that shrinks is an error with numbers; a mapped one would end the
/// process with SIGBUS.
TEST(Tokens, AFileThatShrinksIsAnError) {
  TemporaryFolder folder;
  std::string path = folder.write("t", std::string(100000, 'x'));
  Tokens tokens({path}, std::nullopt, {256, 256});
  EXPECT_EQ(read(tokens, 60000, 2), (Values{'x', 'x'}));
  std::filesystem::resize_file(path, 50000);
  EXPECT_EQ(messageOf<RunError>([&] { read(tokens, 49990, 100); }),
            "'" + path +
                "': expected 100 bytes at offset 49990, got 10: the file had "
                "100000 bytes when the run began");
  EXPECT_NE(messageOf<RunError>([&] {
              read(tokens, 60000, 2);
            }).find("expected 2 bytes at offset 60000, got 0"),
            std::string::npos);
  EXPECT_EQ(read(tokens, 0, 2), (Values{'x', 'x'}));
}

/// Only some of many files stay open: one of the others that disappears is an
/// error, one that stays open can be read to the end of the run.
TEST(Tokens, AFileThatDisappearsIsAnErrorOrStaysOpen) {
  TemporaryFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i)
    paths.push_back(folder.write("f" + std::to_string(i), "ab"));
  Tokens tokens(paths, std::nullopt, {256, 256}, 2);
  EXPECT_EQ(read(tokens, 4, 2), (Values{'a', 'b'}));
  std::filesystem::remove(paths[0]);
  std::filesystem::remove(paths[2]);
  EXPECT_EQ(read(tokens, 0, 2), (Values{'a', 'b'}));
  EXPECT_EQ(messageOf<RunError>([&] { read(tokens, 3, 3); }),
            "cannot open '" + paths[2] + "' again: No such file or directory");
}
