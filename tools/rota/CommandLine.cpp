// SPDX-License-Identifier: Apache-2.0
//
// Flags and RUN.json into RunOptions.
#include "tools/rota/OptionTable.h"

#include "models/JsonFile.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/options/Lists.h"
#include "runtime/program/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace rota;
using Texts = std::vector<std::string>;

static CommandText textOf(Command verb) {
  const char *files =
      "\nOptions stand on the command line or, without dashes, as keys of "
      "RUN.json; flags win.";
  auto run = [&](const char *name, const std::string &description) {
    return CommandText{
        name, description + files, "RUN.json",
        "A file of options; or the model: a .mlir file or a folder"};
  };
  switch (verb) {
  case Command::Train:
    return run("rota train", "Compiles a model and trains it here.");
  case Command::Compile:
    return run("rota compile",
               "Writes a native trainer, or the program at any level.");
  case Command::Plan:
    return run(
        "rota plan",
        "Shows parameters, timeline, memory by use and by remat policy.");
  case Command::Probe:
    return run("rota probe",
               "Runs a few steps on given tokens and writes named tensors.");
  case Command::Schedule:
    return {"rota schedule",
            "Makes, verifies, simulates and draws a timeline, reads one, or "
            "compares several.",
            "schedule", pipe::scheduleNames() + ", or a .csv file"};
  case Command::Checkpoint:
    return {"rota checkpoint",
            "Lists the checkpoints of a folder, shows what one is of, or "
            "verifies every byte.\nlist and show look at manifests and sizes "
            "of files alone. verify ends with exit code 1 when a checkpoint "
            "is damaged.",
            "action",
            "list, show or verify; behind it a checkpoint or a "
            "folder of checkpoints"};
  case Command::Convert:
    return {"rota convert",
            "Writes the weights of a checkpoint as a folder of a model hub: "
            "config.json and\nsafetensors under the hub's names.",
            "checkpoint", "A checkpoint, or the newest of a folder of them"};
  case Command::Eval: {
    CommandText text = run("rota eval", "Finds the loss of a checkpoint's or a "
                                        "hub folder's weights on data.");
    text.positionalHelp = "A checkpoint or the newest of a folder of them; or "
                          "the model; or a file of options";
    return text;
  }
  case Command::Report:
    return {"rota report",
            "Draws a run as one HTML page (report.html in its folder).", "run",
            "The folder that --metrics wrote"};
  }
  return {};
}

/// The arguments without a flag of verbs that look at checkpoints.
static std::optional<Ending> takeCheckpoint(Command verb, CommandLine &line,
                                            RunOptions &options) {
  Texts given = std::exchange(line.positional, {});
  if (verb == Command::Checkpoint) {
    constexpr std::string_view actions[] = {"list", "show", "verify"};
    if (given.empty() || !llvm::is_contained(actions, given.front()))
      return Ending::badInput(
          "expected one of list, show, verify, got " +
          (given.empty() ? "nothing" : "'" + given.front() + "'"));
    options.action = given.front();
    given.erase(given.begin());
  }
  if (given.size() != 1)
    return Ending::badInput("expected one checkpoint or folder of checkpoints, "
                            "got " +
                            std::to_string(given.size()) + " arguments");
  options.checkpoint = given.front();
  return std::nullopt;
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
  bool isNumber = std::holds_alternative<double *>(option.variable);
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
    return Texts{value.dump()};
  if (value.is_number() && isNumber)
    return Texts{numberText(value.get<double>())};
  return std::nullopt;
}

/// Sets the options of RUN.json. Keys of other verbs are checked too, so that
/// one file serves them all.
static std::optional<Ending> readRunFile(const std::string &path,
                                         const std::vector<Option> &table,
                                         RunOptions &options) {
  constexpr unsigned verbs = Command::Train | Command::Compile | Command::Plan |
                             Command::Probe | Command::Eval;
  std::optional<Ending> ending;
  auto report = [&](const mlir::rota::FileLocation &place,
                    const llvm::Twine &message) {
    ending = Ending::badInput(toString(place) + ": " + message.str());
  };
  auto file = mlir::rota::JsonFile::read(path, report);
  if (!file)
    return ending;
  for (const auto &[key, value] : file->root().items()) {
    const Option *option = findOption(table, key, verbs);
    if (!option) {
      report(file->locationOf(key),
             "unknown key '" + key + "'" + suggestion(table, key, verbs, ""));
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

static std::optional<Ending> readArguments(Command verb, Texts arguments,
                                           RunOptions &options) {
  std::vector<Option> table = optionTable(options);
  CommandLine line(table, verb, textOf(verb));
  if (auto ending = line.read(std::move(arguments)))
    return ending;
  bool isOfCheckpoints =
      verb == Command::Checkpoint || verb == Command::Convert;
  if (auto ending = isOfCheckpoints ? takeCheckpoint(verb, line, options)
                                    : takePositional(verb, line))
    return ending;
  for (const std::string &path : line.positional)
    if (auto ending = readRunFile(path, table, options))
      return ending;
  if (auto ending = line.assign(options.given))
    return ending;
  if (std::string name = missingOption(table, verb, options.given);
      !name.empty())
    return Ending::badInput("'" + name + "': the option is missing");
  if (verb == Command::Report || isOfCheckpoints)
    return std::nullopt;
  OptionMistake mistake = verb == Command::Schedule
                              ? checkScheduleOptions(options)
                              : checkOptions(verb, options);
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
