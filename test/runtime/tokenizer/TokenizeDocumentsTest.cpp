// SPDX-License-Identifier: Apache-2.0
//
// Documents in lines as tokens: forms of files, masks, bad lines; the files of
// tokens that are kept.
#include "runtime/Error.h"
#include "runtime/data/TokenFile.h"
#include "runtime/tokenizer/files/TokenCache.h"
#include "runtime/tokenizer/files/TokenizerSettings.h"
#include "test/runtime/documents/Compress.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

using namespace rota;
using namespace rota::test;
using Tokens = std::vector<int32_t>;

namespace {

const std::string kInputs = ROTA_SOURCE_DIR "/test/runtime/tokenizer/Inputs/";

Tokens readTokens(const std::string &path, TokenRole role) {
  constexpr int64_t most = 1 << 20;
  TokenFile file(path, std::nullopt, {most, most}, true);
  Tokens tokens(static_cast<size_t>(file.size()));
  file.read(0, file.size(), role, tokens.data());
  return tokens;
}
Tokens inputs(const std::string &path) {
  return readTokens(path, TokenRole::Input);
}

/// The text of the tokens that count.
std::string countedText(const Tokenizer &tokenizer, const std::string &path) {
  Tokens targets = readTokens(path, TokenRole::Target);
  std::erase(targets, kNoTarget);
  return tokenizer.decode(targets, false);
}

std::string linesOf(const std::vector<std::string> &texts) {
  std::string lines;
  for (const std::string &text : texts)
    lines += nlohmann::json{{"text", text}}.dump() + "\n";
  return lines;
}

/// Words of a text of some length.
std::string words(size_t bytes) {
  std::string text;
  for (uint64_t n = 1; text.size() < bytes; n = n * 6364136223846793005u + 1)
    text += (n >> 60 == 0 ? "the model. " : "reads tokens ");
  return text;
}

// A line is a document: its tokens are those of a file with the same text, also
// where it is long enough to be cut. Compression changes nothing.
TEST(TokenizeDocuments, LinesHaveTheTokensOfFiles) {
  TemporaryFolder folder;
  std::vector<std::string> texts{"the model reads", "", words(900000), "a\nb "};
  std::string lines = linesOf(texts);
  for (const char *name : {"gpt2", "roberta", "sentencepiece-unigram"}) {
    std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + name);
    auto tokensOf = [&](const std::vector<std::string> &files) {
      TokenizeSummary summary = tokenizeFiles({.tokenizer = *tokenizer,
                                               .files = files,
                                               .output = folder.path("t"),
                                               .threads = 2,
                                               .endToken = 7});
      EXPECT_EQ(summary.end.badLines, 0);
      return inputs(folder.path("t"));
    };
    std::vector<std::string> files;
    for (const std::string &text : texts)
      files.push_back(
          folder.write(std::to_string(files.size()) + ".txt", text));
    Tokens expected = tokensOf(files);
    EXPECT_EQ(tokensOf({folder.write("a.jsonl", lines)}), expected) << name;
    EXPECT_EQ(tokensOf({folder.write("a.jsonl.gz", gzip(lines))}), expected);
    EXPECT_EQ(tokensOf({folder.write("a.jsonl.zst", zstd(lines))}), expected);
    EXPECT_EQ(tokensOf({folder.write("2.txt.gz", gzip(texts[2]))}),
              tokensOf({files[2]}));
    EXPECT_FALSE(std::filesystem::exists(folder.path("t.mask")));
  }
}

TEST(TokenizeDocuments, CompletionsAndAnswersCountAlone) {
  TemporaryFolder folder;
  std::string path = folder.write(
      "a.jsonl", R"({"text": "all of it"})"
                 "\n"
                 R"({"prompt": "the mod", "completion": "el reads"})"
                 "\n"
                 R"({"messages": [{"role": "user", "content": "the model"},)"
                 R"( {"role": "assistant", "content": "reads"}]})"
                 "\n");
  for (const char *name : {"gpt2", "qwen", "llama2", "metaspace"}) {
    std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + name);
    TokenizeRequest request{.tokenizer = *tokenizer,
                            .files = {path},
                            .output = folder.path("t"),
                            .useTemplate = false};
    request.read.records.chat = ChatForm{findChatTemplate("chatml"), "", ""};
    tokenizeFiles(request);
    // Tokens are those of the whole text, as apply_chat_template has them.
    Tokens whole;
    std::unique_ptr<Encoder> encoder = tokenizer->makeEncoder();
    for (const char *text :
         {"all of it", "the model reads",
          "<|im_start|>user\nthe model<|im_end|>\n<|im_start|>assistant\nreads"
          "<|im_end|>\n"})
      encoder->encode(text, TextPlace::Start, whole);
    EXPECT_EQ(inputs(folder.path("t")), whole) << name;
    std::string counted = countedText(*tokenizer, folder.path("t"));
    EXPECT_NE(counted.find("all of it"), counted.npos) << name << counted;
    EXPECT_NE(counted.find("el reads"), counted.npos) << name << counted;
    EXPECT_NE(counted.find("reads<|im_end|>"), counted.npos) << name << counted;
    EXPECT_EQ(counted.find("user"), counted.npos) << name << counted;
    EXPECT_EQ(counted.find("assistant"), counted.npos) << name << counted;
  }
}

// A conversation is cut where its tokens do not change: they are those of the
// whole text, and the answers count.
TEST(TokenizeDocuments, LongConversationsHaveTheTokensOfTheirText) {
  TemporaryFolder folder;
  auto messages = nlohmann::json::array();
  std::string text, answers;
  for (size_t n = 0; text.size() < 5 << 20; ++n) {
    bool isAnswer = n % 2 == 1;
    std::string role = isAnswer ? "assistant" : "user";
    std::string content = words(1000 + n % 7 * 20000) + std::to_string(n);
    messages.push_back({{"role", role}, {"content", content}});
    text += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
    answers += isAnswer ? content + "<|im_end|>" : "";
  }
  std::string path = folder.write(
      "a.jsonl", nlohmann::json{{"messages", messages}}.dump() + "\n");
  for (const char *name : {"bytes", "qwen", "llama2"}) {
    std::unique_ptr<Tokenizer> tokenizer =
        openTokenizer(name == std::string(kByteTokens) ? name : kInputs + name);
    TokenizeRequest request{.tokenizer = *tokenizer,
                            .files = {path},
                            .output = folder.path("t"),
                            .threads = 2,
                            .useTemplate = false};
    request.read.records.chat = ChatForm{findChatTemplate("chatml"), "", ""};
    tokenizeFiles(request);
    Tokens whole;
    tokenizer->makeEncoder()->encode(text, TextPlace::Start, whole);
    EXPECT_TRUE(inputs(folder.path("t")) == whole) << name;
    std::string counted = countedText(*tokenizer, folder.path("t"));
    EXPECT_EQ(counted.size(), answers.size()) << name;
    EXPECT_TRUE(counted == answers) << name;
  }
}

TEST(TokenizeDocuments, NamesABadLineOrSkipsIt) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(kInputs + "gpt2");
  std::string path =
      folder.write("a.jsonl", "{\"text\": \"the\"}\n\n{\"text\": 1}\nbroken\n"
                              "{\"text\": \"model\"}\n");
  TokenizeRequest request{
      .tokenizer = *tokenizer, .files = {path}, .output = folder.path("t")};
  EXPECT_EQ(messageOf<InputError>([&] { tokenizeFiles(request); }),
            "'" + path +
                "': line 3: 'text': expected text, got a value of type number");
  EXPECT_EQ(folder.count(), 1); // nothing is left
  request.read.skipBadLines = true;
  TokenizeSummary summary = tokenizeFiles(request);
  EXPECT_EQ(summary.end.badLines, 2);
  EXPECT_EQ(tokenizer->decode(inputs(folder.path("t")), false), "themodel");
}

TEST(TokenizeDocuments, RefusesTokensAboveTheBound) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = makeByteTokenizer();
  std::string path = folder.write("a.jsonl", linesOf({"ok", "o~"}));
  TokenizeRequest request{.tokenizer = *tokenizer,
                          .files = {path},
                          .output = folder.path("t"),
                          .bound = 120};
  EXPECT_EQ(messageOf<InputError>([&] { tokenizeFiles(request); }),
            "'" + path +
                "': expected tokens of the model's vocabulary of 120, got 126, "
                "'~', of the tokenizer 'bytes'");
  EXPECT_EQ(folder.count(), 1);
}

// A run that was ended goes on between two documents, with its mask.
TEST(TokenOutput, KeepsTheMaskOfAnUnfinishedFile) {
  TemporaryFolder folder;
  const std::string path = folder.path("t");
  {
    TokenOutput output(path, {7, 300}, 1);
    output.add(Tokens{1, 2});
    output.add(Tokens{3, 4}, std::string("\0\1", 2));
    output.save({0, 10, 4, 10});
    output.add(Tokens{9}, std::string(1, '\0')); // lost
  }
  {
    TokenOutput output(path, {7, 300}, 1);
    EXPECT_EQ(output.begin().tokens, 4);
    output.add(Tokens{5});
    output.commit();
  }
  EXPECT_EQ(readTokens(path, TokenRole::Target),
            (Tokens{1, 2, kNoTarget, 4, 5}));
  EXPECT_EQ(folder.count(), 2);
  // Tokens that all count leave no mask of those before.
  TokenOutput output(path, {7, 300}, 2);
  output.add(Tokens{6});
  output.commit();
  EXPECT_EQ(folder.count(), 1);
}

TEST(TokenCache, KeepsTokensByTextAndTokenizer) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> gpt2 = openTokenizer(kInputs + "gpt2");
  std::unique_ptr<Tokenizer> qwen = openTokenizer(kInputs + "qwen");
  std::string path = folder.write("a.jsonl", linesOf({"the model"}));
  std::string cache = cacheFolderOf(path);
  EXPECT_EQ(cache, folder.path(".rota-tokens"));
  auto keep = [&](const Tokenizer &tokenizer, const std::string &file) {
    return cacheTokens({.tokenizer = tokenizer, .files = {file}}, cache, file);
  };
  CachedTokens first = keep(*gpt2, path);
  ASSERT_TRUE(first.made);
  EXPECT_EQ(first.made->end.tokens, std::ssize(inputs(first.path)));
  CachedTokens again = keep(*gpt2, path);
  EXPECT_FALSE(again.made);
  EXPECT_EQ(again.path, first.path);
  CachedTokens other = keep(*qwen, path);
  EXPECT_TRUE(other.made);
  EXPECT_NE(other.path, first.path);
  // The same bytes at another time are not encoded again; others are.
  std::filesystem::last_write_time(
      path,
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_FALSE(keep(*gpt2, path).made);
  folder.write("a.jsonl", linesOf({"reads"}));
  CachedTokens changed = keep(*gpt2, path);
  EXPECT_TRUE(changed.made);
  EXPECT_EQ(gpt2->decode(inputs(changed.path), false), "reads");
}

TEST(TokenCache, KeepsTheLastTokensOfAText) {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = makeByteTokenizer();
  auto keep = [&](const std::string &name, size_t text) {
    std::string path = folder.write(name, std::to_string(text));
    return cacheTokens({.tokenizer = *tokenizer, .files = {path}},
                       folder.path("c"), path)
        .path;
  };
  std::string other = keep("a-b", 0), first = keep("a", 0);
  std::vector<std::string> later;
  for (size_t text = 1; text <= kKeptTokens; ++text) {
    later.push_back(keep("a", text));
    EXPECT_EQ(keep("a", 0), first); // used again
  }
  EXPECT_TRUE(std::filesystem::exists(first));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_FALSE(std::filesystem::exists(later.front()));
  for (size_t i = 1; i < later.size(); ++i)
    EXPECT_TRUE(std::filesystem::exists(later[i])) << i;
}

TEST(TokenCache, MakesTokensOnceForManyProcesses) {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", words(200000));
  std::vector<pid_t> children;
  for (int n = 0; n < 4; ++n) {
    pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<Tokenizer> tokenizer = makeByteTokenizer();
      CachedTokens tokens = cacheTokens(
          {.tokenizer = *tokenizer, .files = {path}}, folder.path("c"), path);
      _exit(tokens.made ? 1 : 0);
    }
    children.push_back(child);
  }
  int made = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    made += WEXITSTATUS(status);
  }
  EXPECT_EQ(made, 1);
}

/// Bytes as tokens, and the process ends at the third long text.
class EndingTokenizer : public Tokenizer {
public:
  EndingTokenizer() { vocabulary = 256; }
  std::unique_ptr<Encoder> makeEncoder() const override {
    struct EndingEncoder : Encoder {
      void encode(std::string_view text, TextPlace,
                  std::vector<int32_t> &tokens) override {
        tokens.insert(tokens.end(), text.begin(), text.end());
        if (text.size() > 100000 && ++longTexts == 3)
          _exit(9);
      }
      int longTexts = 0;
    };
    return std::make_unique<EndingEncoder>();
  }
  std::string decode(std::span<const int32_t>, bool) const override {
    return "";
  }
  std::optional<int32_t> find(std::string_view) const override {
    return std::nullopt;
  }
};

// A process that is killed leaves no file under the name of whole tokens, and
// the next one makes them.
TEST(TokenCache, LeavesNothingWholeWhenKilled) {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", words(3000000));
  pid_t child = fork();
  if (child == 0) {
    EndingTokenizer tokenizer;
    cacheTokens({.tokenizer = tokenizer, .files = {path}}, folder.path("c"),
                path);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  for (const auto &entry :
       std::filesystem::directory_iterator(folder.path("c")))
    EXPECT_NE(entry.path().extension(), ".npy");
  std::unique_ptr<Tokenizer> tokenizer = makeByteTokenizer();
  CachedTokens tokens = cacheTokens({.tokenizer = *tokenizer, .files = {path}},
                                    folder.path("c"), path);
  ASSERT_TRUE(tokens.made);
  EXPECT_EQ(tokenizer->decode(inputs(tokens.path), false),
            folder.read("a.txt"));
}

TEST(TokenCache, SaysWhereItCannotWrite) {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", "text");
  std::unique_ptr<Tokenizer> tokenizer = makeByteTokenizer();
  std::string message = messageOf<InputError>([&] {
    cacheTokens({.tokenizer = *tokenizer, .files = {path}}, path + "/c", path);
  });
  EXPECT_EQ(message, "cannot make folder '" + path +
                         "/c': Not a directory; --cache-dir names another for "
                         "tokens");
}

TEST(TokenizerSettings, FindsTheEndTokenAndTheChatTemplate) {
  TemporaryFolder folder;
  std::filesystem::copy(kInputs + "gpt2/tokenizer.json",
                        folder.path("tokenizer.json"));
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(folder.path("."));
  EXPECT_FALSE(readSettings(*tokenizer).endToken);
  folder.write("config.json", R"({"eos_token_id": 3})");
  EXPECT_EQ(readSettings(*tokenizer).endToken, 3);
  folder.write("generation_config.json", R"({"eos_token_id": [5, 6]})");
  EXPECT_EQ(readSettings(*tokenizer).endToken, 5);
  folder.write("tokenizer_config.json", R"({"eos_token": "<|end|>",
    "chat_template": [{"name": "default", "template":
      "'<|im_start|>' + message.role <|im_end|>"}]})");
  TokenizerSettings settings = readSettings(*tokenizer);
  EXPECT_EQ(settings.endToken, tokenizer->find("<|end|>"));
  RecordOptions records;
  chooseChatTemplate("", settings, records);
  EXPECT_STREQ(nameOf(*records.chat->family), "chatml");
  folder.write("chat_template.jinja", "something of its own");
  records = {};
  chooseChatTemplate("", readSettings(*tokenizer), records);
  EXPECT_FALSE(records.chat);
  EXPECT_TRUE(
      records.chatMissing.ends_with("chat_template.jinja' is none of these"));
  EXPECT_EQ(messageOf<InputError>(
                [&] { chooseChatTemplate("no", settings, records); }),
            "expected 'chat-template' to be one of " + chatTemplateNames() +
                ", got 'no'");
  folder.write("tokenizer_config.json", R"({"eos_token": "<none>"})");
  EXPECT_TRUE(messageOf<InputError>([&] {
                readSettings(*tokenizer);
              }).ends_with("', got '<none>'"));
}

} // namespace
