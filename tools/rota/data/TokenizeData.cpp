// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions, by which the runtime reports.
#include "tools/rota/data/TokenizeData.h"

#include "runtime/data/DataPaths.h"
#include "runtime/data/TextNames.h"
#include "runtime/data/TokenFile.h"
#include "runtime/device/Cores.h"
#include "runtime/files/Terminal.h"
#include "runtime/text/Text.h"
#include "runtime/tokenizer/files/TokenCache.h"
#include "runtime/tokenizer/files/TokenizerSettings.h"
#include "runtime/train/rank/Launch.h"
#include "tools/rota/CheckInputs.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

namespace rota {

namespace fs = std::filesystem;

/// The name of no end token.
static constexpr const char *kNoToken = "none";

/// The number that 'end-token' is where no tokenizer knows its text.
static std::optional<int32_t> endNumber(const RunOptions &options) {
  int32_t number = 0;
  const char *begin = options.endToken.data();
  const char *end = begin + options.endToken.size();
  auto [rest, error] = std::from_chars(begin, end, number);
  return error == std::errc() && rest == end && number >= 0
             ? std::optional(number)
             : std::nullopt;
}

static std::optional<int32_t> findEndToken(const RunOptions &options,
                                           const Tokenizer &tokenizer,
                                           const TokenizerSettings &settings) {
  if (options.endToken.empty())
    return settings.endToken;
  if (options.endToken == kNoToken)
    return std::nullopt;
  bool isOfBytes = tokenizer.path == kByteTokens;
  if (std::optional<int32_t> number = endNumber(options);
      number && options.documentMask && isOfBytes)
    return number;
  std::optional<int32_t> token = tokenizer.find(options.endToken);
  if (!token)
    throw InputError(fmt::format("'end-token': expected a token of '{}', got "
                                 "'{}'",
                                 tokenizer.path, options.endToken));
  return token;
}

TokenizeRequest textRequest(const RunOptions &options,
                            const Tokenizer &tokenizer) {
  TokenizerSettings settings = readSettings(tokenizer);
  TokenizeRequest request{.tokenizer = tokenizer,
                          .threads = static_cast<int>(options.threads)};
  request.endToken = findEndToken(options, tokenizer, settings);
  if (request.threads == 0)
    request.threads = availableCores();
  request.useTemplate = options.specialTokens == SpecialTokens::Template;
  request.read.skipBadLines = options.skipBadLines;
  request.read.records.field = options.field;
  chooseChatTemplate(options.chatTemplate, settings, request.read.records);
  return request;
}

const char *typeOf(const TokenizeSummary &summary) {
  return summary.bytesOfToken == 2 ? "uint16" : "uint32";
}

std::string describe(const TokenizeSummary &summary) {
  std::string text = fmt::format("{} as {} out of {} bytes of text",
                                 counted(summary.end.tokens, "token"),
                                 typeOf(summary), grouped(summary.end.bytes));
  if (summary.end.badLines > 0)
    text +=
        fmt::format(", without {}", counted(summary.end.badLines, "bad line"));
  return text;
}

void showProgress(const TokenProgress &progress, double share) {
  if (isTerminal())
    fmt::print("\r{:3.0f}%  {} tokens of {} bytes", share * 100,
               grouped(progress.tokens), grouped(progress.bytes));
  std::fflush(stdout);
}

void endProgress() {
  if (isTerminal())
    fmt::print("\n");
}

/// The tokenizer, end token and chat template of a request, for people.
static std::string describe(const TokenizeRequest &request) {
  std::string text = request.tokenizer.path;
  text += request.endToken
              ? fmt::format(", end token '{}'",
                            request.tokenizer.decode({&*request.endToken, 1},
                                                     /*skipSpecial=*/false))
              : ", no end token";
  if (const std::optional<ChatForm> &chat = request.read.records.chat)
    text += fmt::format(", chat template {}", nameOf(*chat->family));
  return text;
}

namespace {

/// The texts of a run and the tokenizer for them.
class TextData {
public:
  explicit TextData(RunOptions &options)
      : options(options), isFirst(findLaunch().process == 0) {
    fs::path model = options.compiler.model;
    std::error_code unknown;
    if (fs::is_directory(model, unknown))
      config = model / "config.json";
    else if (model.extension() == ".json")
      config = model;
    std::string folder = config.parent_path().string();
    if (!options.tokenizer.empty())
      tokenizerPath = options.tokenizer;
    else if (std::optional<std::string> path = findTokenizer(folder);
             path && !config.empty() && vocabulary() > kBytes)
      tokenizerPath = *path;
  }

  /// Sets the end token of documents that the options keep apart. Throws
  /// InputError where there is none.
  void setDocumentEnd() {
    std::optional<int32_t> &end = options.compiler.build.documentEnd;
    if (options.documentMask && !end)
      end = documentEnd();
  }

  /// The items with files of tokens in the place of texts.
  std::vector<std::string> replace(const std::vector<std::string> &texts) {
    std::vector<std::string> replaced;
    std::vector<DataItem> items = findItems(texts);
    for (size_t n = 0; n < items.size(); ++n) {
      if (!isText(items[n])) {
        replaced.push_back(texts[n]);
        continue;
      }
      std::string path = makeTokens(items[n]);
      replaced.push_back(
          items[n].weight.empty() ? path : path + ":" + items[n].weight);
    }
    return replaced;
  }

private:
  int32_t documentEnd() {
    std::optional<int32_t> token = findDocumentEnd();
    std::string error = "'document-mask': expected an end token, after which a "
                        "document ends";
    if (!token)
      throw InputError(fmt::format(
          "{}, got none; '--end-token' names it, {}", error,
          tokenizerPath.empty() ? "without a tokenizer by its number"
                                : "out of '" + tokenizerPath + "'"));
    if (int64_t tokens = vocabulary(); tokens > 0 && *token >= tokens)
      throw InputError(fmt::format("{}, below the vocabulary of {}, got {}",
                                   error, tokens, *token));
    return *token;
  }

  std::optional<int32_t> findDocumentEnd() {
    if (!tokenizerPath.empty()) {
      const Tokenizer &words = opened();
      return findEndToken(options, words, readSettings(words));
    }
    if (options.endToken == kNoToken)
      return std::nullopt;
    if (!options.endToken.empty()) {
      std::optional<int32_t> number = endNumber(options);
      if (!number)
        throw InputError(fmt::format(
            "'end-token': expected a number of 0 or more, as there is no "
            "tokenizer, got '{}'",
            options.endToken));
      return number;
    }
    return config.empty()
               ? std::nullopt
               : readEndNumber(config.string(), config.string(), vocabulary());
  }

  /// Bytes of a file that are tokens as they stand need no other file.
  bool isText(const std::string &file) const {
    bool hasWords = !tokenizerPath.empty() && tokenizerPath != kByteTokens;
    return needsTokens(file) || (hasWords && !options.tokenType &&
                                 !saysForm(DataFile(file, /*keepOpen=*/false)));
  }

  /// Throws InputError where an item has texts and tokens.
  bool isText(const DataItem &item) const {
    const std::string *text = nullptr, *tokens = nullptr;
    for (const std::string &file : item.files)
      (isText(file) ? text : tokens) = &file;
    if (text && tokens)
      throw InputError(fmt::format("'{}': expected a folder of texts or of "
                                   "tokens, got the text '{}' and "
                                   "the tokens '{}'",
                                   item.path, *text, *tokens));
    return text;
  }

  const Tokenizer &opened() {
    if (!tokenizer)
      tokenizer = tokenizerPath.empty() ? makeByteTokenizer()
                                        : openTokenizer(tokenizerPath);
    return *tokenizer;
  }

  /// The tokenizer of texts. Names it on standard error at the first text.
  const Tokenizer &tokenizerOf(const DataItem &item) {
    if (std::exchange(isNamed, true))
      return opened();
    if (int64_t tokens = vocabulary(); tokenizerPath.empty() && tokens > kBytes)
      throw InputError(fmt::format(
          "'{}': expected --tokenizer, or a tokenizer in the folder of the "
          "model, whose vocabulary of {} is not that of bytes",
          item.path, tokens));
    if (isFirst && !options.json)
      fmt::print(stderr, "note: 'tokenizer': {}\n",
                 describe(textRequest(options, opened())));
    return opened();
  }

  /// 0: not known.
  int64_t vocabulary() const { return readVocabulary(config.string()); }

  std::string makeTokens(const DataItem &item) {
    for (const std::string &file : item.files)
      if (std::string mask = file + kMaskEnding; isThere(mask))
        throw InputError(fmt::format(
            "'{}': expected no mask beside '{}', whose bytes are no tokens",
            mask, file));
    TokenizeRequest request = textRequest(options, tokenizerOf(item));
    request.files = item.files;
    request.bound = vocabulary();
    if (!options.json)
      request.report = showProgress;
    CachedTokens tokens = cacheTokens(
        request,
        options.cacheDir.empty() ? cacheFolderOf(item.path) : options.cacheDir,
        item.path);
    if (tokens.made && !options.json)
      endProgress();
    if (!options.json && (tokens.made || isFirst))
      fmt::print(stderr, "note: {}: {} '{}'\n", item.path,
                 tokens.made ? describe(*tokens.made) + ", kept in"
                             : "tokens found in",
                 tokens.path);
    return tokens.path;
  }

  static constexpr int64_t kBytes = 256; // vocabulary of a model of bytes

  RunOptions &options;
  const bool isFirst;                   // of the processes of a launcher
  fs::path config;                      // of the model; empty: it has none
  std::string tokenizerPath;            // empty: none
  std::unique_ptr<Tokenizer> tokenizer; // null: not opened yet
  bool isNamed = false;                 // on standard error
};

} // namespace

ExitCode findDocumentEnd(RunOptions &options) {
  if (!options.documentMask)
    return kExitSuccess;
  return reportErrors([&] { TextData(options).setDocumentEnd(); });
}

ExitCode tokenizeData(RunOptions &options) {
  return reportErrors([&] {
    TextData texts(options);
    texts.setDocumentEnd();
    std::vector<std::string> data = texts.replace(options.data);
    options.validation.data = texts.replace(options.validation.data);
    options.data = data;
  });
}

} // namespace rota
