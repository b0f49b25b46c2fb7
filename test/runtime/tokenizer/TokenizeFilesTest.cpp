// SPDX-License-Identifier: Apache-2.0
//
// Files of text as files of tokens: parts, threads, interruptions.
#include "runtime/tokenizer/files/TokenizeFiles.h"
#include "runtime/Error.h"
#include "runtime/data/TokenFile.h"
#include "runtime/tokenizer/files/CutText.h"
#include "runtime/tokenizer/text/Utf8.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <random>

using namespace rota;
using namespace rota::test;
using Tokens = std::vector<int32_t>;

namespace {

const std::string kInputs = ROTA_SOURCE_DIR "/test/runtime/tokenizer/Inputs/";

/// Words, runs, line breaks and broken bytes.
std::string randomText(uint64_t seed, size_t bytes) {
  std::mt19937_64 random(seed);
  auto below = [&](size_t n) { return random() % n; };
  const char *words[] = {"the",
                         "model",
                         "Gr\xC3\xB6ner",
                         "reads",
                         "\xE6\x9D\xB1\xE4\xBA\xAC",
                         "1234567",
                         "don't",
                         "\xF0\x9F\x91\x8D",
                         "x+=1;",
                         "\xFF\xE2\x82",
                         "<s>"};
  const char *spaces[] = {" ",    " ",  " ", "  ", "\n",
                          "\n\n", "\t", "",  ", ", ". "};
  std::string text;
  while (text.size() < bytes) {
    text += words[below(std::size(words))];
    text += spaces[below(std::size(spaces))];
    if (below(200) == 0)
      text += std::string(below(3000), " =a"[below(3)]);
  }
  return text;
}

Tokens readTokens(const std::string &path, int64_t vocabulary) {
  TokenFile file(path, std::nullopt, {vocabulary, vocabulary}, true);
  Tokens tokens(static_cast<size_t>(file.size()));
  file.read(0, file.size(), TokenRole::Input, tokens.data());
  return tokens;
}

Tokens encodeWhole(const Tokenizer &tokenizer, const std::string &text) {
  Tokens tokens;
  tokenizer.makeEncoder()->encode(repairUtf8(text), TextPlace::Start, tokens);
  return tokens;
}

// Parts have the tokens of the whole, for every kind of tokenizer.
TEST(TokenizeFiles, PartsHaveTheTokensOfTheWhole) {
  TemporaryFolder folder;
  std::string text = randomText(1, 700000);
  std::string path = folder.write("a.txt", text);
  for (const char *name :
       {"gpt2", "llama3", "qwen", "roberta", "llama2", "metaspace", "clip",
        "bert-uncased", "odd", "unigram", "sentencepiece-bpe",
        "sentencepiece-unigram"}) {
    std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + name);
    TokenizeSummary summary = tokenizeFiles({.tokenizer = *tokenizer,
                                             .files = {path},
                                             .output = folder.path("t"),
                                             .threads = 2,
                                             .useTemplate = false});
    EXPECT_EQ(summary.end.bytes, std::ssize(text));
    EXPECT_EQ(readTokens(folder.path("t"), tokenizer->vocabulary),
              encodeWhole(*tokenizer, text))
        << name;
  }
  EXPECT_EQ(folder.count(), 2);
}

TEST(TokenizeFiles, PutsTokensAroundEachDocument) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "roberta");
  std::vector<std::string> files{folder.write("a", "the model"),
                                 folder.write("b", ""),
                                 folder.write("c", "reads")};
  tokenizeFiles({.tokenizer = *tokenizer,
                 .files = files,
                 .output = folder.path("t"),
                 .endToken = 5});
  Tokens expected{0}, a = encodeWhole(*tokenizer, "the model"),
                      c = encodeWhole(*tokenizer, "reads");
  expected.insert(expected.end(), a.begin(), a.end());
  expected.insert(expected.end(), {1, 5, 0, 1, 5, 0});
  expected.insert(expected.end(), c.begin(), c.end());
  expected.insert(expected.end(), {1, 5});
  EXPECT_EQ(readTokens(folder.path("t"), tokenizer->vocabulary), expected);
  EXPECT_EQ(readTokenOrigin(folder.path("t")),
            (TokenOrigin{tokenizer->hash, tokenizer->vocabulary}));
}

// A process that ended after any save goes on there, and the file has the bytes
// of one that was never interrupted.
TEST(TokenOutput, GoesOnAfterTheLastSave) {
  TemporaryFolder folder;
  const TokenOrigin origin{7, 300};
  const std::string path = folder.path("t");
  {
    TokenOutput output(path, origin, 1);
    output.add(Tokens{1, 2, 3});
    output.save({0, 10, 3, 10});
    output.add(Tokens{9, 9}); // lost
  }
  {
    TokenOutput output(path, origin, 1);
    EXPECT_EQ(output.begin().offset, 10);
    EXPECT_EQ(output.begin().tokens, 3);
    output.add(Tokens{4});
    output.commit();
  }
  EXPECT_EQ(readTokens(path, 300), (Tokens{1, 2, 3, 4}));
  EXPECT_EQ(folder.count(), 1);
}

TEST(TokenOutput, BeginsAnewForAnotherKey) {
  TemporaryFolder folder;
  const std::string path = folder.path("t");
  {
    TokenOutput output(path, {7, 300}, 1);
    output.add(Tokens{1, 2, 3});
    output.save({0, 10, 3, 10});
  }
  TokenOutput output(path, {7, 100000}, 2);
  EXPECT_EQ(output.begin().tokens, 0);
  output.add(Tokens{99999});
  output.commit();
  EXPECT_EQ(readTokens(path, 100000), Tokens{99999});
}

// An unfinished file whose text and request are the same is taken up.
TEST(TokenizeFiles, GoesOnInTheMiddleOfAFile) {
  TemporaryFolder folder;
  std::string text = randomText(2, 700000);
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "llama3");
  TokenizeRequest request{.tokenizer = *tokenizer,
                          .files = {folder.write("a", text)},
                          .output = folder.path("t")};
  struct Interruption {};
  request.report = [](const TokenProgress &progress, double) {
    if (progress.offset > 300000)
      throw Interruption();
  };
  // The report comes in time only on a slow machine: then nothing is resumed.
  try {
    tokenizeFiles(request);
  } catch (const Interruption &) {
  }
  request.report = nullptr;
  tokenizeFiles(request);
  EXPECT_EQ(readTokens(folder.path("t"), tokenizer->vocabulary),
            encodeWhole(*tokenizer, text));
}

TEST(TokenizeFiles, RefusesATextThatCannotBeCut) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "gpt2");
  std::string path = folder.write("a", std::string(34 << 20, ' '));
  std::string message = messageOf<InputError>([&] {
    tokenizeFiles(
        {.tokenizer = *tokenizer, .files = {path}, .output = folder.path("t")});
  });
  EXPECT_EQ(message, "'" + path +
                         "': expected a place between words where the text can "
                         "be cut, got none in 16777216 bytes from byte 0");
  EXPECT_EQ(folder.count(), 1); // nothing is left
}

TEST(TokenizeFiles, RefusesATextWithoutTokens) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "gpt2");
  std::string path = folder.write("a", "");
  EXPECT_EQ(messageOf<InputError>([&] {
              tokenizeFiles({.tokenizer = *tokenizer,
                             .files = {path},
                             .output = folder.path("t")});
            }),
            "'" + path + "': the text has no token");
}

} // namespace
