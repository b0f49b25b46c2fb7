// SPDX-License-Identifier: Apache-2.0
//
// `rota generate`: compile a trainer, run its `generate`, and print the text of
// the tokens. Compiled with exceptions, by which the runtime reports; they do
// not leave this file.
#include "ir/rota/sharding/MeshText.h"
#include "runtime/files/Terminal.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Printable.h"
#include "runtime/train/rank/Launch.h"
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Compile.h"
#include "tools/rota/Process.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/data/Prompt.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace rota {

namespace {

/// A bound on the window, and where it comes from.
struct WindowLimit {
  int64_t tokens = 0; // 0: none
  std::string source;
};

/// Prints tokens that come as text with commas between them.
class TokenPrinter {
public:
  /// `prompt`: null where tokens are printed.
  TokenPrinter(const Prompt *prompt, bool prints) : prints(prints) {
    if (!prompt)
      return;
    continuation.emplace(*prompt);
    print(prompt->text());
  }

  void take(std::string_view piece) {
    for (char c : piece)
      if (c >= '0' && c <= '9')
        number += c;
      else
        add();
  }

  /// The end of the output.
  void finish() {
    add();
    print(continuation ? continuation->finish() + "\n" : "\n");
  }

private:
  void add() {
    if (number.empty())
      return;
    int32_t token = 0;
    std::from_chars(number.data(), number.data() + number.size(), token);
    number.clear();
    print(continuation ? continuation->add({&token, 1})
                       : fmt::format("{}{}", count > 0 ? "," : "", token));
    ++count;
  }

  void print(const std::string &text) {
    if (prints)
      fmt::print("{}", isTerminal() ? printable(text) : text);
    std::fflush(stdout);
  }

  const bool prints; // one of several processes does
  std::optional<Prompt::Continuation> continuation;
  std::string number;
  int64_t count = 0;
};

} // namespace

/// Positions of a configuration, if it says them.
static WindowLimit limitOfModel(const std::string &model) {
  namespace fs = std::filesystem;
  fs::path path(model);
  std::error_code unknown;
  if (fs::is_directory(path, unknown))
    path /= "config.json";
  std::ifstream file(path);
  auto config = nlohmann::json::parse(file, nullptr,
                                      /*allow_exceptions=*/false);
  for (const char *part : {"", "text_config"})
    for (const char *key : {"max_position_embeddings", "n_positions"}) {
      const nlohmann::json &keys =
          *part && config.is_object() && config.contains(part) ? config[part]
                                                               : config;
      if (keys.is_object() && keys.contains(key) &&
          keys[key].is_number_integer() && keys[key].get<int64_t>() > 0)
        return {keys[key].get<int64_t>(),
                fmt::format("the configuration's '{}'", key)};
    }
  return {};
}

/// The sizes of the mesh, which is checked.
static int64_t product(const RunOptions &options,
                       std::initializer_list<mlir::rota::MeshAxis> axes) {
  std::string error;
  auto sizes =
      mlir::rota::parseMeshSizes(options.compiler.shard.meshText, error);
  int64_t ranks = 1;
  for (mlir::rota::MeshAxis axis : axes)
    ranks *= sizes ? (*sizes)[static_cast<size_t>(axis)] : 1;
  return ranks;
}

/// Sets the shapes: one sequence for each rank that must have one, and a window
/// for the prompt and what follows. The last token is not read.
static void chooseShapes(RunOptions &options, const WindowLimit &limit,
                         const std::string &promptName) {
  using mlir::rota::MeshAxis;
  options.batchSize =
      options.compiler.schedule.microbatches *
      product(options, {MeshAxis::Data, MeshAxis::Fsdp, MeshAxis::Expert});
  int64_t &window = options.compiler.build.sequenceLength;
  auto prompt = static_cast<int64_t>(options.samples.prompt.size());
  if (!options.given.contains("sequence-length")) {
    // Ranks along these axes have equal parts, in pairs for balanced rings.
    int64_t parts =
        2 * product(options, {MeshAxis::Context, MeshAxis::Sequence});
    int64_t most = limit.tokens > 0 ? limit.tokens : int64_t(1) << 31;
    int64_t wanted =
        std::min(most, prompt + std::min(options.samples.tokens, most) - 1);
    window = parts == 2 ? wanted
                        : std::max(parts, std::min((wanted + parts - 1) / parts,
                                                   most / parts) *
                                              parts);
  }
  if (prompt > window)
    throw InputError(fmt::format(
        "'{}': expected at most {} tokens, which is {}, got {}", promptName,
        window,
        options.given.contains("sequence-length") ? "'sequence-length'"
                                                  : limit.source,
        prompt));
}

/// The prompt as the options have it. Throws InputError.
static std::optional<Prompt> readPrompt(RunOptions &options) {
  bool isText = options.given.contains("prompt");
  if (isText == options.samples.isOn())
    throw InputError(isText
                         ? "'prompt': expected no 'prompt-tokens' beside it"
                         : "expected 'prompt', or 'prompt-tokens', got none");
  if (!isText)
    return std::nullopt;
  Prompt prompt(options, "prompt", options.prompt);
  options.samples.prompt.assign(prompt.tokens().begin(), prompt.tokens().end());
  return prompt;
}

/// What the trainer prints with --json, with the text of its tokens.
static std::string withText(const std::string &line, const Prompt &prompt) {
  auto sample = nlohmann::ordered_json::parse(line, nullptr,
                                              /*allow_exceptions=*/false);
  if (!sample.is_object() || !sample.contains("tokens"))
    return line; // the trainer has failed
  Prompt::Continuation continuation(prompt);
  std::string text =
      prompt.text() +
      continuation.add(sample["tokens"].get<std::vector<int32_t>>());
  sample["text"] = text + continuation.finish();
  return jsonText(sample) + "\n";
}

static int runTrainer(const lowering::MemoryFile &trainer,
                      const RunOptions &options, const Prompt *prompt) {
  std::vector<std::string> arguments =
      trainerArguments(Command::Generate, options);
  if (options.json) {
    std::string line;
    int code = runProgram(trainer, arguments,
                          [&](std::string_view piece) { line += piece; });
    fmt::print("{}", prompt ? withText(line, *prompt) : line);
    return code;
  }
  std::optional<TokenPrinter> printer;
  bool prints = findLaunch().process == 0;
  int code = runProgram(trainer, arguments, [&](std::string_view piece) {
    if (!printer) // the trainer has a token
      printer.emplace(prompt, prints);
    printer->take(piece);
  });
  if (printer)
    printer->finish();
  return code;
}

static int generate(RunOptions options) {
  std::optional<Prompt> prompt = readPrompt(options);
  bool takesCapacity = options.given.contains("expert-capacity");
  auto model = std::make_unique<CheckpointModel>();
  std::string error;
  if (!model->find(options, error))
    return reportBadInput(error);
  findStopTokens(options, prompt ? &*prompt : nullptr);
  int64_t ofRun = options.compiler.build.sequenceLength;
  if (!options.compiler.model.ends_with(".mlir"))
    chooseShapes(options,
                 !options.checkpoint.empty() && ofRun > 0
                     ? WindowLimit{ofRun, "the sequence length of the "
                                          "checkpoint's run"}
                     : limitOfModel(options.compiler.model),
                 prompt ? "prompt" : "prompt-tokens");
  // No token of a prompt is dropped, and nothing but the next one is predicted.
  if (!takesCapacity)
    options.compiler.build.experts.capacity = 0;
  options.compiler.build.predictionLoss = 0;
  if (!checkInputs(Command::Generate, options, error))
    return reportBadInput(error);
  std::error_code noFile;
  lowering::MemoryFile trainer("rota-trainer", noFile);
  if (noFile)
    return reportNoFile(noFile);
  if (ExitCode code =
          compileTrainer(Command::Generate, options, trainer, std::move(model)))
    return code;
  return runTrainer(trainer, options, prompt ? &*prompt : nullptr);
}

int runGenerate(const RunOptions &options) {
  int code = kExitSuccess;
  ExitCode failure = reportErrors([&] { code = generate(options); });
  return failure ? failure : code;
}

} // namespace rota
