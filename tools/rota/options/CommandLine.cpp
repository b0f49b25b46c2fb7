// SPDX-License-Identifier: Apache-2.0
//
// Flags and RUN.json into RunOptions.
#include "tools/rota/options/Import.h"
#include "tools/rota/options/OptionTable.h"

#include "models/JsonFile.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/options/Lists.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <cstdio>

using namespace rota;
using Texts = std::vector<std::string>;

/// The text of a verb that takes the options of a run.
static CommandText textOfRun(Command verb) {
  const char *files =
      "\nOptions stand on the command line or, without dashes, as keys of "
      "RUN.json; flags win.";
  auto run = [&](const char *name, const std::string &description,
                 Texts examples) {
    return CommandText{
        name,       description + files,
        "RUN.json", "A file of options; or the model: a .mlir file or a folder",
        "flag",     std::move(examples)};
  };
  switch (verb) {
  case Command::Train:
    return run("rota train", "Compiles a model and trains it here.",
               {"rota train models/configs/quickstart.json --steps 100",
                "rota train --model models/configs/tiny --data english.txt "
                "--batch-size 16 --sequence-length 256 --mesh stage=4"});
  case Command::Compile:
    return run("rota compile",
               "Writes a native trainer, or the program at any level.",
               {"rota compile models/configs/quickstart.json -o trainer",
                "rota compile --model models/configs/tiny --batch-size 16 "
                "--sequence-length 256 --emit kernels"});
  case Command::Plan: {
    CommandText text = run(
        "rota plan",
        "Shows parameters, timeline, memory by use and by remat policy. Takes "
        "the command line\nof `rota train` as it stands.",
        {"rota plan models/configs/quickstart.json --explain",
         "rota plan --model models/configs/llama-3.1-8b --batch-size 64 "
         "--sequence-length 4096 --mesh fsdp=8,stage=4 --remat full"});
    text.accepted = unsigned(Command::Train);
    return text;
  }
  case Command::Probe:
    return run("rota probe",
               "Runs a few steps on given tokens and writes named tensors.",
               {"rota probe models/configs/tiny --tokens tokens.safetensors -o "
                "loss.safetensors",
                "rota probe --model models/configs/tiny --tokens "
                "tokens.safetensors --write logits,gradients -o "
                "out.safetensors"});
  case Command::Eval: {
    CommandText text = run("rota eval",
                           "Finds the loss of a checkpoint's or a "
                           "hub folder's weights on data.",
                           {"rota eval run1 --data held-out.txt",
                            "rota eval --model DIR --data held-out.txt "
                            "--batch-size 16 --sequence-length 256"});
    text.positionalHelp = "A checkpoint or the newest of a folder of them; or "
                          "the model; or a file of options";
    return text;
  }
  case Command::Generate: {
    CommandText text =
        run("rota generate",
            "Continues a prompt with the weights of a checkpoint or of a hub "
            "folder. Each token\nruns the forward of a trainer over a window "
            "of one length; of a longer text, over\nits end. This is for "
            "looking at a model. To serve one, give what `rota convert`\n"
            "writes to a program that serves.",
            {"rota generate run1 --tokenizer bytes --prompt Once",
             "rota generate run1 --prompt-tokens 1,15043 --tokens 200 "
             "--temperature 0.8 --top-p 0.9 --seed 7"});
    text.positionalHelp = "A hub folder; or a checkpoint or the newest of a "
                          "folder of them; or a file of options";
    return text;
  }
  default:
    return {};
  }
}

static CommandText textOf(Command verb) {
  switch (verb) {
  case Command::Schedule:
    return {"rota schedule",
            "Makes, verifies, simulates and draws a timeline, reads one, or "
            "compares several.",
            "schedule",
            pipe::scheduleNames() + ", or a .csv file",
            "flag",
            {"rota schedule --compare 1f1b,zb1p,zbv --stages 8 --microbatches "
             "32",
             "rota schedule circular --stages 4 --repeats 2 --microbatches "
             "8"}};
  case Command::Checkpoint:
    return {"rota checkpoint",
            "Lists the checkpoints of a folder, shows what one is of, or "
            "verifies every byte.\nlist and show look at manifests and sizes "
            "of files alone. verify ends with exit code 1 when a checkpoint "
            "is damaged.",
            "action",
            "list, show or verify; after it a checkpoint or a "
            "folder of checkpoints",
            "flag",
            {"rota checkpoint verify run1", "rota checkpoint list run1"}};
  case Command::Convert:
    return {"rota convert",
            "Writes the weights of a checkpoint, or of a hub folder, as a "
            "folder of a model hub:\nconfig.json and safetensors under the "
            "hub's names. Quantized weights (FP8 in blocks,\nMXFP4) become "
            "numbers of the model's type. Low-rank adapters that a run trained "
            "become a folder\nas PEFT writes it, or with --merge a part of the "
            "weights.",
            "weights",
            "A checkpoint, the newest of a folder of them, or a hub folder",
            "flag",
            {"rota convert run1 --dtype bf16 --shard-size 5GB -o hub",
             "rota convert run1 --merge -o hub"}};
  case Command::Machine:
    return {"rota machine",
            "Lists the machines that plans are made for, shows the numbers of "
            "one with their\nsources, or measures in a minute: this host, or "
            "with --device cuda its GPUs.",
            "action",
            "list, show or measure; after show a name or a file",
            "flag",
            {"rota machine show h100-sxm-80gb",
             "rota machine measure --device cuda --machine h100-sxm-80gb -o "
             "here.json"}};
  case Command::Tokenize:
    return {"rota tokenize",
            "Writes files of text as one file of tokens, which --data takes. A "
            "file is a document,\nand so is a line of .jsonl; .gz and .zst are "
            "read too. A run that was ended goes on\nwhere it stopped.",
            "text",
            "Files, or folders of files",
            "flag",
            {"rota tokenize books/ --tokenizer llama/ --end-token "
             "'<|end_of_text|>' -o tokens.npy",
             "rota tokenize english.txt --tokenizer tokenizer.json -o "
             "tokens.npy"}};
  case Command::Detokenize:
    return {"rota detokenize",
            "Writes the text of tokens.",
            "tokens",
            "Files of tokens, or folders of them",
            "flag",
            {"rota detokenize tokens.npy --tokenizer llama/ -o text.txt",
             "rota detokenize tokens.npy --tokenizer tokenizer.json"}};
  case Command::Report:
    return {"rota report",
            "Draws a run as one HTML page (report.html in its folder).",
            "run",
            "The folder that --metrics wrote",
            "flag",
            {"rota report metrics -o run.html", "rota report metrics"}};
  default:
    return textOfRun(verb);
  }
}

std::span<const std::string_view> rota::actionsOf(Command verb) {
  static constexpr std::string_view checkpoint[] = {"list", "show", "verify"};
  static constexpr std::string_view machine[] = {"list", "show", "measure"};
  if (verb == Command::Checkpoint)
    return checkpoint;
  if (verb == Command::Machine)
    return machine;
  return {};
}

/// Takes the action of `verb` off the front of `given`.
static std::optional<Ending> takeAction(Command verb, Texts &given,
                                        RunOptions &options) {
  std::span<const std::string_view> actions = actionsOf(verb);
  if (given.empty() || !llvm::is_contained(actions, given.front()))
    return Ending::badInput(
        "expected one of " + llvm::join(actions, ", ") + ", got " +
        (given.empty() ? "nothing" : "'" + given.front() + "'"));
  options.action = given.front();
  given.erase(given.begin());
  return std::nullopt;
}

/// The arguments without a flag of verbs that look at checkpoints.
static std::optional<Ending> takeCheckpoint(Command verb, CommandLine &line,
                                            RunOptions &options) {
  Texts given = std::exchange(line.positional, {});
  if (verb == Command::Checkpoint)
    if (auto ending = takeAction(verb, given, options))
      return ending;
  if (given.size() != 1)
    return Ending::badInput(
        "expected one checkpoint or folder of checkpoints" +
        std::string(verb == Command::Convert ? ", or hub folder" : "") +
        ", got " + counted(int64_t(given.size()), "argument"));
  options.checkpoint = given.front();
  return std::nullopt;
}

/// The arguments without a flag of `machine`.
static std::optional<Ending> takeMachine(CommandLine &line,
                                         RunOptions &options) {
  Texts given = std::exchange(line.positional, {});
  if (auto ending = takeAction(Command::Machine, given, options))
    return ending;
  size_t names = options.action == "show" ? 1 : 0;
  if (given.size() != names)
    return Ending::badInput("expected " +
                            std::string(names ? "one machine" : "nothing") +
                            " after " + options.action + ", got " +
                            counted(int64_t(given.size()), "argument"));
  if (names > 0)
    options.machine = given.back();
  return std::nullopt;
}

/// The arguments without a flag of `tokenize` and `detokenize`.
static std::optional<Ending> takeTexts(CommandLine &line, RunOptions &options) {
  options.texts = std::exchange(line.positional, {});
  if (options.texts.empty())
    return Ending::badInput("expected a file or a folder, got nothing");
  return std::nullopt;
}

/// Why `path`, which the verb takes without a flag, leads nowhere.
static std::string noSuchPath(Command verb, const std::string &path) {
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status);
      error && error != std::errc::no_such_file_or_directory)
    return "cannot read '" + path + "': " + error.message();
  std::string expected = textOf(verb).positionalHelp;
  expected[0] = llvm::toLower(expected[0]);
  return "expected " + expected + ", got '" + path +
         "', which is no file and no folder";
}

/// The argument without a flag: the schedule, or the folder of a report; or the
/// model (a .mlir file or a folder) and at most one RUN.json, which stays.
static std::optional<Ending> takePositional(Command verb, CommandLine &line) {
  for (const std::string &path : std::exchange(line.positional, {}))
    if (verb == Command::Schedule)
      line.add("schedule", path);
    else if (verb == Command::Report)
      line.add("run", path);
    else if (llvm::StringRef(path).ends_with(".mlir") ||
             llvm::sys::fs::is_directory(path))
      line.add("model", path);
    else if (!llvm::sys::fs::exists(path) &&
             !llvm::StringRef(path).ends_with(".json"))
      return Ending::badInput(noSuchPath(verb, path));
    else
      line.positional.push_back(path);
  if (line.positional.size() > 1)
    return Ending::badInput("expected one RUN.json, got '" +
                            line.positional[0] + "' and '" +
                            line.positional[1] + "'");
  return std::nullopt;
}

/// The texts that the option gets for a value of the file; none where the value
/// is of a type that the option does not take. A list is an array of its
/// elements, or a text as its flag would have.
static std::optional<Texts> textsOf(const Option &option,
                                    const nlohmann::json &value) {
  bool isNumber =
      std::holds_alternative<double *>(option.variable) ||
      std::holds_alternative<std::optional<double> *>(option.variable);
  bool isInteger =
      std::holds_alternative<int64_t *>(option.variable) ||
      std::holds_alternative<std::optional<int64_t> *>(option.variable);
  if (value.is_string() && !option.isFlag() && !isNumber && !isInteger)
    return option.isList() ? splitList(value.get<std::string>())
                           : Texts{value.get<std::string>()};
  if (value.is_array() && option.isList() && !value.empty() &&
      llvm::all_of(value, [](const auto &each) { return each.is_string(); }))
    return value.get<Texts>();
  if (value.is_boolean() && option.isFlag())
    return Texts{value.get<bool>() ? "true" : "false"};
  if (value.is_number_integer() && (isNumber || isInteger))
    return Texts{jsonText(value)};
  if (value.is_number() && isNumber)
    return Texts{numberText(value.get<double>())};
  return std::nullopt;
}

/// Sets the options of RUN.json. Keys of other verbs are checked too, so that
/// one file serves them all.
static std::optional<Ending> readRunFile(const std::string &path,
                                         const std::vector<Option> &table,
                                         RunOptions &options) {
  std::optional<Ending> ending;
  auto report = [&](const mlir::rota::FileLocation &place,
                    const llvm::Twine &message) {
    ending = Ending::badInput(toString(place) + ": " + message.str());
  };
  auto file = mlir::rota::JsonFile::read(path, report);
  if (!file)
    return ending;
  for (const auto &[key, value] : file->root().items()) {
    const Option *option = findOption(table, key, kRunFileVerbs);
    if (!option) {
      report(file->locationOf(key),
             "unknown key '" + key + "'" +
                 suggestion(table, key, kRunFileVerbs, ""));
      return ending;
    }
    auto texts = textsOf(*option, value);
    std::string error =
        texts ? assignText(*option, *texts)
              : expected(ruleOf(*option), mlir::rota::shortText(value));
    if (!error.empty()) {
      report(file->locationOf(key), "'" + key + "': " + error);
      return ending;
    }
    options.given.insert(option->name);
  }
  return std::nullopt;
}

/// The options that the verb needs and that are not given. The shape of a
/// probe is that of its tokens, of an evaluation that of the checkpoint's run,
/// and a module has its own.
static Texts missingOf(Command verb, const std::vector<Option> &table,
                       const RunOptions &options) {
  Texts missing = missingOptions(table, verb, options.given);
  bool isModule = llvm::StringRef(options.compiler.model).ends_with(".mlir");
  if ((verb == Command::Train || verb == Command::Compile ||
       verb == Command::Plan) &&
      !isModule)
    for (const char *name : {"batch-size", "sequence-length"})
      if (!options.given.contains(name))
        missing.push_back(name);
  return missing;
}

static std::optional<Ending> readArguments(Command verb, Texts arguments,
                                           RunOptions &options) {
  std::vector<Option> table = optionTable(options);
  CommandLine line(table, verb, textOf(verb));
  if (auto ending = line.read(std::move(arguments)))
    return ending;
  bool isOfCheckpoints =
      verb == Command::Checkpoint || verb == Command::Convert;
  bool isOfTokens = verb == Command::Tokenize || verb == Command::Detokenize;
  if (auto ending = isOfCheckpoints ? takeCheckpoint(verb, line, options)
                    : isOfTokens    ? takeTexts(line, options)
                    : verb == Command::Machine ? takeMachine(line, options)
                                               : takePositional(verb, line))
    return ending;
  for (const std::string &path : line.positional)
    if (auto ending = readRunFile(path, table, options))
      return ending;
  if (auto ending = line.assign(options.given))
    return ending;
  if (auto ending = takeImport(table, options))
    return ending;
  if (Texts missing = missingOf(verb, table, options); !missing.empty())
    return line.missing(missing);
  if (Texts unneeded = line.unneeded(); !unneeded.empty())
    std::fprintf(stderr, "note: not needed to plan: --%s\n",
                 llvm::join(unneeded, ", --").c_str());
  if (verb == Command::Report || verb == Command::Machine || isOfTokens ||
      isOfCheckpoints)
    return std::nullopt;
  if (verb == Command::Plan && !options.output.empty() && !options.search &&
      !options.exported)
    return Ending::badInput("'output': expected 'search' beside it, whose best "
                            "plan is written, or 'export'");
  OptionMistake mistake = verb == Command::Schedule
                              ? checkScheduleOptions(options)
                              : checkOptions(options);
  if (!mistake.option.empty())
    return Ending::badInput("'" + mistake.option + "': " + mistake.message);
  return std::nullopt;
}

std::optional<int> rota::parseRunOptions(Command verb, int argc,
                                         const char *const *argv,
                                         RunOptions &options) {
  auto ending = readArguments(verb, {argv, argv + argc}, options);
  return ending ? std::optional(ending->print()) : std::nullopt;
}
