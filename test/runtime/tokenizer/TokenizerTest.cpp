// SPDX-License-Identifier: Apache-2.0
//
// Tokens and texts of small tokenizers of each kind against those that the
// Python packages made (make_golden.py), and files that are refused.
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/TextStream.h"
#include "runtime/tokenizer/text/Utf8.h"
#include "test/runtime/TemporaryFolder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace rota;
using namespace rota::test;
using nlohmann::json;
using Tokens = std::vector<int32_t>;

namespace {

const std::string kInputs = ROTA_SOURCE_DIR "/test/runtime/tokenizer/Inputs/";

json readJson(const std::string &path) {
  return json::parse(std::ifstream(path, std::ios::binary));
}

Tokens encode(const Tokenizer &tokenizer, const std::string &text) {
  Tokens tokens = tokenizer.before;
  tokenizer.makeEncoder()->encode(text, TextPlace::Start, tokens);
  tokens.insert(tokens.end(), tokenizer.after.begin(), tokenizer.after.end());
  return tokens;
}

class Golden : public testing::TestWithParam<const char *> {};

TEST_P(Golden, TokensAndTexts) {
  std::string folder = kInputs + GetParam();
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(folder);
  json cases = readJson(folder + "/golden.json")["cases"];
  ASSERT_GT(cases.size(), 50u);
  for (const json &each : cases) {
    Tokens expected = each["tokens"].get<Tokens>();
    EXPECT_EQ(encode(*tokenizer, each["text"]), expected) << each["text"];
    EXPECT_EQ(tokenizer->decode(expected, false),
              each["decoded"].get<std::string>())
        << each["text"];
  }
}

// One encoder for all texts, so that its cache is used, and a text stream that
// gets one token at a time.
TEST_P(Golden, CacheAndStream) {
  std::string folder = kInputs + GetParam();
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(folder);
  std::unique_ptr<Encoder> encoder = tokenizer->makeEncoder();
  Tokens all;
  json cases = readJson(folder + "/golden.json")["cases"];
  for (int round = 0; round < 2; ++round)
    for (const json &each : cases) {
      Tokens tokens = tokenizer->before;
      encoder->encode(each["text"].get<std::string>(), TextPlace::Start,
                      tokens);
      tokens.insert(tokens.end(), tokenizer->after.begin(),
                    tokenizer->after.end());
      EXPECT_EQ(tokens, each["tokens"].get<Tokens>()) << each["text"];
      if (round == 0)
        all.insert(all.end(), tokens.begin(), tokens.end());
    }
  TextStream stream(*tokenizer, false);
  std::string text;
  for (int32_t token : all)
    text += stream.add({&token, 1});
  text += stream.finish();
  EXPECT_EQ(validBytes(text), text.size());
  // The end of words is a space except for the last one.
  if (std::string_view(GetParam()) != "clip")
    EXPECT_EQ(text, tokenizer->decode(all, false));
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Golden,
                         testing::Values("gpt2", "llama3", "qwen", "roberta",
                                         "llama2", "metaspace", "clip",
                                         "bert-uncased", "bert-cased", "odd",
                                         "unigram", "sentencepiece-bpe",
                                         "sentencepiece-unigram"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Ends of many pieces in a row are in the middle of a character.
TEST(TextStream, TellsWholeCharacters) {
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "gpt2");
  Tokens tokens = encode(*tokenizer, "\xF0\x9F\x91\x8D");
  ASSERT_EQ(tokens.size(), 4u);
  Tokens all;
  for (int n = 0; n < 30000; ++n)
    all.insert(all.end(), tokens.begin(), tokens.end());
  TextStream stream(*tokenizer, false);
  std::string text;
  for (size_t at = 0; at < all.size(); at += 22001)
    text += stream.add(
        std::span(all).subspan(at, std::min<size_t>(22001, all.size() - at)));
  EXPECT_EQ(text + stream.finish(), tokenizer->decode(all, false));
}

// Byte-level tokenizers lose nothing.
TEST(Tokenizer, DecodingGivesTheTextBack) {
  for (const char *name : {"gpt2", "llama3"}) {
    std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + name);
    json cases = readJson(kInputs + name + "/golden.json")["cases"];
    for (const json &each : cases)
      EXPECT_EQ(each["text"], each["decoded"]);
  }
}

TEST(Tokenizer, FindsTokensByName) {
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "roberta");
  EXPECT_EQ(tokenizer->find("</s>"), 1);
  EXPECT_EQ(tokenizer->find("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer->before, Tokens{0});
  EXPECT_EQ(tokenizer->after, Tokens{1});
  EXPECT_EQ(openTokenizer(kInputs + "sentencepiece-bpe")->find("</s>"), 2);
}

TEST(Tokenizer, LeavesSpecialTokensOut) {
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "llama2");
  Tokens tokens = encode(*tokenizer, "the model");
  EXPECT_EQ(tokens.front(), 1);
  EXPECT_EQ(tokenizer->decode(tokens, false), "<s> the model");
  EXPECT_EQ(tokenizer->decode(tokens, true), "the model");
}

TEST(Tokenizer, RefusesTokensOutsideOfTheVocabulary) {
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "gpt2");
  int32_t last = static_cast<int32_t>(tokenizer->vocabulary);
  for (int32_t token : {last, -1})
    EXPECT_NE(messageOf<InputError>([&] {
                tokenizer->decode({&token, 1}, false);
              }).find("got " + std::to_string(token)),
              std::string::npos);
}

/// The message about gpt2's tokenizer.json after a change.
template <typename Change> std::string errorAfter(Change change) {
  json file = readJson(kInputs + "gpt2/tokenizer.json");
  change(file);
  return messageOf<InputError>([&] { readHubTokenizer(file.dump(), "t"); });
}

TEST(Tokenizer, NamesWhatIsWrong) {
  EXPECT_EQ(errorAfter([](json &file) { file["version"] = "2.0"; }),
            "'t': version: expected \"1.0\", got \"2.0\"");
  EXPECT_EQ(errorAfter([](json &file) { file.erase("model"); }),
            "'t': expected the key 'model'");
  EXPECT_EQ(errorAfter([](json &file) { file["model"]["type"] = "Neural"; }),
            "'t': model: the model 'Neural' is not supported");
  EXPECT_EQ(errorAfter([](json &file) { file["model"]["dropout"] = 0.1; }),
            "'t': model.dropout: dropout of merges is not supported");
  EXPECT_EQ(
      errorAfter([](json &file) { file["model"]["merges"][1] = {"q", "zz"}; }),
      "'t': model.merges[1]: expected tokens of the vocabulary, got 'zz'");
  EXPECT_EQ(errorAfter([](json &file) { file["model"]["merges"][0] = "a"; }),
            "'t': model.merges[0]: expected two tokens with a space between "
            "them, or an array of two, got \"a\"");
  EXPECT_EQ(errorAfter([](json &file) { file["model"]["vocab"]["a"] = -1; }),
            "'t': model.vocab['a']: expected an integer from 0 to 268435455, "
            "got -1");
  EXPECT_EQ(
      errorAfter([](json &file) { file["pre_tokenizer"]["type"] = "Magic"; }),
      "'t': pre_tokenizer: the pre-tokenizer 'Magic' is not supported");
  EXPECT_EQ(errorAfter([](json &file) {
              file["normalizer"] = {{"type", "Sequence"},
                                    {"normalizers", {{{"type", "NFX"}}}}};
            }),
            "'t': normalizer.normalizers[0]: the normalizer 'NFX' is not "
            "supported");
  EXPECT_EQ(errorAfter([](json &file) { file["decoder"]["type"] = 3; }),
            "'t': decoder.type: expected a text, got 3");
  EXPECT_EQ(
      errorAfter([](json &file) { file["added_tokens"][0].erase("special"); }),
      "'t': added_tokens[0]: expected the key 'special'");
}

/// The message about an expression.
std::string errorOf(const std::string &expression) {
  return errorAfter([&](json &file) {
    file["pre_tokenizer"] = {{"type", "Split"},
                             {"pattern", {{"Regex", expression}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
  });
}

TEST(Tokenizer, NamesWhatExpressionsLack) {
  const std::string place = "'t': pre_tokenizer.pattern.Regex: expression '";
  EXPECT_EQ(errorOf("a("), place + "a(': missing closing parenthesis");
  EXPECT_EQ(errorOf("[a[b]]"),
            place + "[a[b]]': a class in a class at byte 2 is not supported");
  EXPECT_EQ(errorOf("[a&&b]"), place + "[a&&b]': an intersection of classes at "
                                       "byte 2 is not supported");
  EXPECT_EQ(errorOf("a{2}+"), place + "a{2}+': an interval with '+' after it "
                                      "at byte 1 is not supported");
  EXPECT_EQ(errorOf("\\y"), place + "\\y': '\\y' at byte 0 is not supported");
  EXPECT_NE(errorOf("\\p{Klingon}").find("unknown property"),
            std::string::npos);
}

// Steps grow with the power of two of the text's length.
TEST(Tokenizer, GivesUpOnExpressionsWithoutAnEnd) {
  json file = readJson(kInputs + "gpt2/tokenizer.json");
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "^(a|a)*\\z"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  std::unique_ptr<Tokenizer> tokenizer = readHubTokenizer(file.dump(), "t");
  EXPECT_EQ(messageOf<InputError>(
                [&] { encode(*tokenizer, std::string(50, 'a') + "b"); }),
            "expression '^(a|a)*\\z': match limit exceeded");
}

TEST(Tokenizer, RefusesOtherFiles) {
  TemporaryFolder folder;
  EXPECT_EQ(messageOf<InputError>([&] { openTokenizer(folder.path("")); }),
            "'" + folder.path("") +
                "': expected tokenizer.json or tokenizer.model in the folder");
  std::string json = folder.write("tokenizer.json", "{\"model\": ");
  EXPECT_NE(messageOf<InputError>([&] {
              openTokenizer(json);
            }).find("'" + json + "': expected JSON: parse error at "),
            std::string::npos);
  EXPECT_NE(messageOf<InputError>([] {
              readHubTokenizer("1e999", "t");
            }).find("'t': expected JSON: "),
            std::string::npos);
  std::string model = folder.write("tokenizer.model", "no protobuf");
  EXPECT_NE(messageOf<InputError>([&] {
              openTokenizer(model);
            }).find("'" + model + "': expected a model of sentencepiece"),
            std::string::npos);
  EXPECT_EQ(messageOf<InputError>([&] { openTokenizer(folder.path("no")); }),
            "cannot read '" + folder.path("no") +
                "': No such file or directory");
}

TEST(Tokenizer, RefusesATableThatLeadsOutsideOfIt) {
  std::ifstream file(kInputs + "sentencepiece-unigram/tokenizer.model",
                     std::ios::binary);
  const std::string model(std::istreambuf_iterator<char>(file), {});
  size_t trie = model.find(std::string("\x00\x04\x00\x00", 4));
  ASSERT_NE(trie, std::string::npos);
  auto refusal = [&](size_t unit, char byte) {
    std::string broken = model;
    broken[trie + 4 + 4 * unit + 2] = byte;
    return messageOf<InputError>([&] { readSentencePiece(broken, "t"); });
  };
  const std::string kRule = "'t': expected a table of characters "
                            "(precompiled_charsmap) whose trie ends inside of "
                            "it";
  constexpr size_t kFirst = 0, kUnitOfE = 1, kValueOfAccent = 4;
  EXPECT_EQ(refusal(kFirst, '\x77'), kRule);
  EXPECT_EQ(refusal(kUnitOfE, '\x77'), kRule);
  EXPECT_EQ(refusal(kValueOfAccent, '\x77'), kRule);
  EXPECT_EQ(messageOf<InputError>(
                [&] { readSentencePiece(model.substr(0, trie + 600), "t"); }),
            "'t': expected a model of sentencepiece, a protobuf");
}

TEST(Utf8, RepairsAsPythonDoes) {
  // bytes.decode("utf-8", errors="replace")
  const std::string r(kReplacement);
  EXPECT_EQ(repairUtf8("a\xFF"
                       "b"),
            "a" + r + "b");
  EXPECT_EQ(repairUtf8("\xE2\x82"), r);
  EXPECT_EQ(repairUtf8("\xE2\x82 \xF0\x9F\x91"), r + " " + r);
  EXPECT_EQ(repairUtf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(repairUtf8("\xF5\x80\xC0\x80"), r + r + r + r);
  EXPECT_EQ(repairUtf8("\xF0\x9F\x91\x8D"), "\xF0\x9F\x91\x8D");
  EXPECT_EQ(validBytes("abcdefghijk\xC3\xA9\xC3"), 13u);
}

} // namespace
