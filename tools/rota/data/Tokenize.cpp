// SPDX-License-Identifier: Apache-2.0
//
// The verbs tokenize and detokenize. Compiled with exceptions, by which the
// runtime reports; they do not leave this file.
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/data/TokenizeData.h"

#include "runtime/data/DataPaths.h"
#include "runtime/data/TokenFile.h"
#include "runtime/files/WriteFile.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"
#include "runtime/tokenizer/TextStream.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {

namespace {

/// The files that the arguments stand for, in their order.
std::vector<std::string> findFiles(const std::vector<std::string> &paths) {
  std::vector<SourcePaths> sources = findSources(paths);
  for (const SourcePaths &source : sources)
    if (sources.size() > 1 || source.files.empty())
      throw InputError(fmt::format("'{}': expected files or folders without "
                                   "weights",
                                   source.name));
  return sources.front().files;
}

void tokenize(const RunOptions &options) {
  auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(options.tokenizer);
  TokenizeRequest request = textRequest(options, *tokenizer);
  request.files = findFiles(options.texts);
  request.output = options.output;
  if (!options.json)
    request.report = showProgress;
  checkWritable(request.output);
  TokenizeSummary summary = tokenizeFiles(request);
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (options.json)
    return fmt::print("{}\n", jsonText(nlohmann::ordered_json{
                                  {"output", request.output},
                                  {"tokens", summary.end.tokens},
                                  {"bytes", summary.end.bytes},
                                  {"type", typeOf(summary)},
                                  {"vocabulary", tokenizer->vocabulary},
                                  {"bad_lines", summary.end.badLines},
                                  {"resumed_bytes", summary.begin.bytes},
                                  {"seconds", seconds}}));
  endProgress();
  if (summary.begin.bytes > 0)
    fmt::print("resumed after {} bytes\n", grouped(summary.begin.bytes));
  fmt::print("wrote {}: {}, vocabulary {}, in {:.1f} s\n", request.output,
             describe(summary), grouped(tokenizer->vocabulary), seconds);
}

/// Refuses tokens that another tokenizer made.
void requireOrigin(const std::string &path, const Tokenizer &tokenizer) {
  std::optional<TokenOrigin> origin = readTokenOrigin(path);
  if (origin && origin->hash != tokenizer.hash)
    throw InputError(fmt::format(
        "'{}': expected tokens of the tokenizer '{}', got those of another one "
        "with a vocabulary of {}",
        path, tokenizer.path, origin->vocabulary));
}

void detokenize(const RunOptions &options) {
  constexpr int64_t kTokens = 1 << 14; // of a piece
  std::unique_ptr<Tokenizer> tokenizer = openTokenizer(options.tokenizer);
  std::vector<std::string> files = findFiles(options.texts);
  for (const std::string &path : files)
    requireOrigin(path, *tokenizer);
  bool isPrinted = options.output.empty() || options.output == "-";
  std::optional<PendingFile> out;
  if (!isPrinted) {
    checkWritable(options.output);
    out.emplace(options.output);
  }
  int64_t written = 0, count = 0;
  auto write = [&](const std::string &text) {
    if (out)
      out->write(written, text);
    else
      std::fwrite(text.data(), 1, text.size(), stdout);
    written += std::ssize(text);
  };
  for (const std::string &path : files) {
    TokenFile file(path, options.tokenType,
                   {tokenizer->vocabulary, tokenizer->vocabulary},
                   /*keepOpen=*/true);
    TextStream text(*tokenizer, options.specialTokens == SpecialTokens::None);
    std::vector<int32_t> tokens;
    for (int64_t at = 0; at < file.size(); at += std::ssize(tokens)) {
      tokens.resize(static_cast<size_t>(std::min(kTokens, file.size() - at)));
      file.read(at, std::ssize(tokens), TokenRole::Input, tokens.data());
      write(text.add(tokens));
    }
    write(text.finish());
    count += file.size();
  }
  if (!out)
    return;
  out->commit();
  fmt::print("wrote {}: {} bytes of text out of {}\n", options.output,
             grouped(written), counted(count, "token"));
}

} // namespace

int runTokenize(const RunOptions &options) {
  return reportErrors([&] { tokenize(options); });
}

int runDetokenize(const RunOptions &options) {
  return reportErrors([&] { detokenize(options); });
}

} // namespace rota
