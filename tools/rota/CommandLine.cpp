// SPDX-License-Identifier: Apache-2.0
//
// Flags and RUN.json into RunOptions. This file alone is compiled with
// exceptions, which CLI11 throws; none leaves it.
#include "tools/rota/OptionChecks.h"
#include "tools/rota/OptionTable.h"

#include "models/JsonFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>

using namespace rota;

namespace {

struct VerbText {
  Verb verb;
  const char *name;
  const char *description;
};

constexpr VerbText verbTexts[] = {
    {Verb::Train, "train", "Compiles a model and trains it here."},
    {Verb::Compile, "compile",
     "Writes a native trainer, or the program at any level."},
    {Verb::Plan, "plan",
     "Shows parameters, timeline, memory by use and by remat policy."},
    {Verb::Probe, "probe",
     "Runs a few steps on given tokens and writes named tensors."},
};

const VerbText &textOf(Verb verb) {
  return *llvm::find_if(
      verbTexts, [&](const VerbText &text) { return text.verb == verb; });
}

int complain(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return ExitBadInput;
}

/// "TYPE [bytes]": what stands for the value in --help, and the default.
std::string valueHelp(const OptionSpec &option) {
  std::string text = option.value;
  std::string defaults = llvm::join(valueTexts(option, RunOptions()), ",");
  bool isUnset = option.minimum > 0 && defaults == "0";
  if (!defaults.empty() && !isUnset)
    text += " [" + defaults + "]";
  return text;
}

/// The flags as they stand on the command line.
class Flags {
public:
  Flags(Verb verb)
      : verb(verb), app(std::string(textOf(verb).description) +
                            "\nOptions stand on the command line or, without "
                            "dashes, as keys of RUN.json; flags win.",
                        std::string("rota ") + textOf(verb).name) {
    app.allow_extras();
    app.get_formatter()->column_width(36);
    app.add_option("RUN.json", files,
                   "A file of options; or the model: a .mlir file or a folder")
        ->option_text(" ");
    for (const OptionSpec &option : optionTable())
      if (option.verbs & unsigned(verb))
        add(option);
  }

  /// Reads the arguments; an exit code when the program ends here.
  std::optional<int> parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
    try {
      app.parse(arguments);
    } catch (const CLI::CallForHelp &) {
      std::fputs(app.help().c_str(), stdout);
      return ExitSuccess;
    } catch (const CLI::ArgumentMismatch &error) {
      std::string what = error.what();
      return complain("expected a value after '" +
                      what.substr(0, what.find(':')) + "'");
    } catch (const CLI::ParseError &error) {
      return complain(error.what());
    }
    for (const std::string &word : app.remaining())
      return complainUnknown(word);
    takeModels();
    if (files.size() > 1)
      return complain("expected one RUN.json, got '" + files[0] + "' and '" +
                      files[1] + "'");
    return std::nullopt;
  }

  const std::vector<std::string> &runFiles() const { return files; }

  /// Sets what was given.
  std::optional<int> assign(RunOptions &options) {
    for (const OptionSpec &option : optionTable()) {
      auto it = texts.find(option.name);
      if (it == texts.end() || it->second.empty())
        continue;
      bool isList =
          std::holds_alternative<std::vector<std::string> RunOptions::*>(
              option.member);
      if (!isList && it->second.size() > 1)
        return complain("'--" + option.name + "' stands twice, with '" +
                        it->second[0] + "' and '" + it->second[1] + "'");
      std::string error = assignText(option, it->second, options);
      if (!error.empty())
        return complain("'--" + option.name + "': " + error);
    }
    return std::nullopt;
  }

private:
  /// A .mlir file or a folder that stands alone means the model.
  void takeModels() {
    auto isModel = [](const std::string &path) {
      return llvm::StringRef(path).ends_with(".mlir") ||
             llvm::sys::fs::is_directory(path);
    };
    llvm::copy_if(files, std::back_inserter(texts["model"]), isModel);
    llvm::erase_if(files, isModel);
  }

  void add(const OptionSpec &option) {
    std::string names = "--" + option.name;
    if (option.letter)
      names = std::string("-") + option.letter + "," + names;
    std::vector<std::string> &values = texts[option.name];
    CLI::Option *added = nullptr;
    if (std::holds_alternative<bool RunOptions::*>(option.member)) {
      added = app.add_flag_function(
          names,
          [&values](int64_t count) {
            values.push_back(count > 0 ? "true" : "false");
          },
          option.help);
    } else {
      added = app.add_option(names, values, option.help)
                  ->allow_extra_args(false)
                  ->option_text(valueHelp(option));
      if (std::holds_alternative<std::vector<std::string> RunOptions::*>(
              option.member))
        added->delimiter(',');
    }
    added->group(option.group);
  }

  int complainUnknown(const std::string &word) {
    llvm::StringRef name = llvm::StringRef(word).split('=').first.ltrim('-');
    if (!word.starts_with("-"))
      return complain("unknown argument '" + word + "'");
    std::string flag = "'--" + name.str() + "'";
    if (findOption(name))
      return complain(flag + " does not apply to 'rota " + textOf(verb).name +
                      "'");
    return complain("unknown flag '" + word.substr(0, word.find('=')) + "'" +
                    suggestion(name, unsigned(verb), "--"));
  }

  Verb verb;
  CLI::App app;
  std::vector<std::string> files;
  std::map<std::string, std::vector<std::string>> texts;
};

/// Sets the options of RUN.json. Keys of other verbs are checked too, so that
/// one file serves them all.
std::optional<int> readRunFile(const std::string &path, RunOptions &options) {
  auto report = [](const mlir::rota::FilePlace &place,
                   const llvm::Twine &message) {
    complain(toString(place) + ": " + message.str());
  };
  auto file = mlir::rota::JsonFile::read(path, report);
  if (!file)
    return ExitBadInput;
  for (const auto &[key, value] : file->root().items()) {
    std::string place = toString(file->placeOf(key)) + ": ";
    const OptionSpec *option = findOption(key);
    if (!option)
      return complain(place + "unknown key '" + key + "'" +
                      suggestion(key, ~0u, ""));
    std::string error = assignJson(*option, value, options);
    if (!error.empty())
      return complain(place + "'" + key + "': " + error);
  }
  return std::nullopt;
}

} // namespace

std::optional<int> rota::parseRunOptions(Verb verb, int argc,
                                         const char *const *argv,
                                         RunOptions &options) {
  Flags flags(verb);
  if (auto code = flags.parse({argv, argv + argc}))
    return code;
  for (const std::string &path : flags.runFiles())
    if (auto code = readRunFile(path, options))
      return code;
  if (auto code = flags.assign(options))
    return code;
  OptionMistake mistake = checkOptions(verb, options);
  if (!mistake.option.empty())
    return complain("'" + mistake.option + "': " + mistake.message);
  return std::nullopt;
}
