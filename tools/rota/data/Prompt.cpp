// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions, by which the runtime reports.
#include "tools/rota/data/Prompt.h"

#include "runtime/options/Lists.h"
#include "runtime/program/JsonText.h"
#include "runtime/tokenizer/files/TokenizerSettings.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rota {

namespace fs = std::filesystem;

/// The tokenizer of a prompt.
static std::unique_ptr<Tokenizer> openFor(const RunOptions &options,
                                          const std::string &name) {
  if (!options.tokenizer.empty())
    return openTokenizer(options.tokenizer);
  std::string advice = fmt::format(
      "; '--tokenizer' names one for '{}', or says 'bytes' for a model of "
      "bytes, and '--prompt-tokens' takes tokens",
      name);
  if (options.compiler.model.empty())
    throw InputError("a checkpoint has no tokenizer" + advice);
  try {
    return openTokenizer(options.compiler.model);
  } catch (const InputError &error) {
    throw InputError(error.what() + advice);
  }
}

Prompt::Prompt(const RunOptions &options, const std::string &name,
               const std::string &text)
    : tokenizer(openFor(options, name)), given(repairUtf8(text)),
      hidesSpecial(options.specialTokens == SpecialTokens::None) {
  if (!hidesSpecial)
    encoded = tokenizer->before;
  tokenizer->makeEncoder()->encode(given, TextPlace::Start, encoded);
  if (encoded.empty())
    throw InputError(fmt::format(
        "'{}': expected a text with a token or more, got '{}'", name, given));
}

std::optional<int32_t> Prompt::endToken() const {
  return readSettings(*tokenizer).endToken;
}

/// The folder of a file, or the folder itself.
static std::string folderOf(const std::string &path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown)
             ? path
             : fs::path(path).parent_path().string();
}

void findStopTokens(RunOptions &options, const Prompt *prompt) {
  if (options.ignoreEos || options.given.contains(kStopTokens))
    return;
  std::vector<std::string> folders;
  for (const std::string &path : {options.compiler.model, options.tokenizer})
    if (!path.empty() && path != kByteTokens && !path.ends_with(".mlir"))
      folders.push_back(folderOf(path));
  std::vector<int64_t> &stops = options.samples.stops;
  for (const char *name : {"generation_config.json", "config.json"})
    for (const std::string &folder : folders)
      if (stops.empty())
        stops = readEndTokens((fs::path(folder) / name).string());
  if (std::optional<int32_t> token = prompt ? prompt->endToken() : std::nullopt;
      token && stops.empty())
    stops = {*token};
  // A model may be smaller than its tokenizer.
  std::string config =
      (fs::path(folderOf(options.compiler.model)) / "config.json").string();
  if (int64_t vocabulary = readVocabulary(config))
    std::erase_if(stops, [&](int64_t token) { return token >= vocabulary; });
}

Prompt::Continuation::Continuation(const Prompt &prompt)
    : prompt(prompt), stream(*prompt.tokenizer, prompt.hidesSpecial) {
  stream.add(prompt.encoded);
}

std::string Prompt::Continuation::add(std::span<const int32_t> tokens) {
  std::vector<int32_t> known;
  for (int32_t token : tokens)
    if (token < prompt.tokenizer->vocabulary)
      known.push_back(token);
  return stream.add(known);
}

/// "1,2" as tokens.
static std::vector<int32_t> readTokens(const std::string &line) {
  std::vector<int32_t> tokens;
  for (const std::string &text : splitList(line)) {
    int32_t token = 0;
    std::from_chars(text.data(), text.data() + text.size(), token);
    tokens.push_back(token);
  }
  return tokens;
}

/// Answers each line of tokens.
static void decodeLines(const Prompt &prompt, std::FILE *in, std::FILE *out) {
  std::string line;
  for (int c; (c = std::fgetc(in)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    Prompt::Continuation continuation(prompt);
    std::string text = prompt.text() + continuation.add(readTokens(line));
    text += continuation.finish();
    fmt::print(out, "{}\n", jsonText(nlohmann::json(text)));
    std::fflush(out);
    line.clear();
  }
}

std::vector<int64_t> startDecoder(const Prompt &prompt) {
  auto fail = [](const char *what) -> int {
    throw RunError(fmt::format("cannot {} for the text of samples: {}", what,
                               std::strerror(errno)));
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail("make sockets");
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0)
    fail("start a process");
  if (child > 0) {
    close(ends[1]);
    return {ends[0], ends[0]};
  }
  // A signal to all of a terminal's processes leaves the last sample its text.
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE})
    std::signal(signal, SIG_IGN);
  close(ends[0]);
  close(STDOUT_FILENO);
  try {
    decodeLines(prompt, fdopen(ends[1], "r"), fdopen(dup(ends[1]), "w"));
  } catch (const std::exception &) { // the trainer prints tokens instead
  }
  _exit(kExitSuccess);
}

} // namespace rota
