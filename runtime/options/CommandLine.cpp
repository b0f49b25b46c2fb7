// SPDX-License-Identifier: Apache-2.0
//
// This file alone is compiled with exceptions, which CLI11 throws; none leaves
// it.
#include "runtime/options/CommandLine.h"
#include "runtime/Error.h"
#include "runtime/files/Terminal.h"
#include "runtime/options/Lists.h"
#include "runtime/options/WrapLines.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <utility>

namespace rota {

Ending Ending::badInput(const std::string &message) {
  return {kExitBadInput, "error: " + message + "\n"};
}

int Ending::print() const {
  std::fputs(text.c_str(), exitCode == kExitSuccess ? stdout : stderr);
  return exitCode;
}

std::string valueHelp(const Option &option) {
  std::string defaults;
  for (const std::string &text : valueTexts(option))
    defaults += (defaults.empty() ? "" : ",") + text;
  int64_t *const *number = std::get_if<int64_t *>(&option.variable);
  bool isUnset = number && double(**number) < option.minimum;
  return defaults.empty() || isUnset ? option.value
                                     : option.value + " [" + defaults + "]";
}

std::string helpOf(const Option &option) {
  std::string help = option.help;
  for (const char *separator = ": ";
       const std::string &choice : choicesOf(option))
    help += std::exchange(separator, ", ") + choice;
  return help;
}

/// Adds `option` to the parser, which collects what is given in `values`. Help
/// lists it under `group`; empty: not at all.
static void addTo(CLI::App &app, const Option &option,
                  std::vector<std::string> &values, const std::string &group) {
  std::string names = "--" + option.name;
  if (option.letter)
    names = std::string("-") + option.letter + "," + names;
  CLI::Option *added = nullptr;
  if (option.isFlag()) {
    added = app.add_flag_function(
        names,
        [&values](int64_t count) {
          values.push_back(count > 0 ? "true" : "false");
        },
        helpOf(option));
  } else {
    added = app.add_option(names, values, helpOf(option))
                ->allow_extra_args(false)
                ->type_size(option.words)
                ->option_text(valueHelp(option));
  }
  added->group(group);
}

/// The examples at the end of help. Their lines stay whole, to be copied.
static std::string examplesOf(const CommandText &text) {
  std::string examples;
  for (const std::string &example : text.examples)
    examples += (examples.empty() ? "Examples:\n  " : "  ") + example + "\n";
  return examples;
}

CommandLine::CommandLine(const std::vector<Option> &table, Command command,
                         CommandText text)
    : table(table), command(command), text(std::move(text)) {}

std::optional<Ending> CommandLine::parse(std::vector<std::string> arguments,
                                         std::vector<std::string> &unknown) {
  std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
  try {
    CLI::App app(text.description, text.name);
    app.allow_extras();
    size_t width = terminalWidth();
    // A narrow terminal has more room for descriptions than for names.
    size_t column = width > 0 && width < 100 ? 24 : 36;
    app.get_formatter()->column_width(column);
    if (!text.positional.empty())
      app.add_option(text.positional, positional, text.positionalHelp)
          ->option_text(" ");
    for (const Option &option : table)
      if (option.commands & mask())
        addTo(app, option, texts[option.name],
              option.commands & unsigned(command) ? option.group : "");
    try {
      app.parse(arguments);
    } catch (const CLI::CallForHelp &) {
      return Ending{kExitSuccess,
                    wrapLines(app.help(), width, column) + examplesOf(text)};
    }
    unknown = app.remaining();
  } catch (const CLI::ArgumentMismatch &error) {
    std::string what = error.what();
    return Ending::badInput("expected a value after '" +
                            what.substr(0, what.find(':')) + "'");
  } catch (const CLI::Error &error) {
    return Ending::badInput(error.what());
  }
  return std::nullopt;
}

std::optional<Ending> CommandLine::read(std::vector<std::string> arguments) {
  std::vector<std::string> unknown;
  if (auto ending = parse(std::move(arguments), unknown))
    return ending;
  if (!unknown.empty())
    return unknownWord(unknown.front());
  return std::nullopt;
}

void CommandLine::add(const std::string &option, const std::string &value) {
  texts[option].push_back(value);
}

std::optional<Ending>
CommandLine::assign(std::set<std::string, std::less<>> &given) const {
  for (const Option &option : table) {
    auto it = texts.find(option.name);
    if (!(option.commands & mask()) || it == texts.end() || it->second.empty())
      continue;
    std::vector<std::string> values = it->second;
    if (option.words > 1 && values.size() > size_t(option.words))
      return Ending::badInput("'--" + option.name + "' stands twice");
    if (option.words > 1) {
      // The elements stand apart.
    } else if (option.isList()) {
      values.clear();
      for (const std::string &list : it->second)
        for (std::string &element : splitList(list))
          values.push_back(std::move(element));
    } else if (values.size() > 1) {
      return Ending::badInput("'--" + option.name + "' stands twice, with '" +
                              values[0] + "' and '" + values[1] + "'");
    }
    std::string error = assignText(option, values);
    if (!error.empty())
      return Ending::badInput("'--" + option.name + "': " + error);
    given.insert(option.name);
  }
  return std::nullopt;
}

std::vector<std::string> CommandLine::unneeded() const {
  std::vector<std::string> names;
  for (const Option &option : table)
    if (auto it = texts.find(option.name);
        it != texts.end() && !it->second.empty() &&
        !findOption(table, option.name, unsigned(command)) &&
        &option == findOption(table, option.name, mask()))
      names.push_back(option.name);
  return names;
}

Ending CommandLine::missing(const std::vector<std::string> &options) const {
  return Ending::badInput(
      missingText(options) +
      (text.examples.empty() ? "" : ", as in: " + text.examples.back()));
}

Ending CommandLine::unknownWord(const std::string &word) const {
  if (!word.starts_with("-"))
    return Ending::badInput("unknown argument '" + word + "'");
  std::string flag = word.substr(0, word.find('='));
  std::string name =
      flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  if (findOption(table, name, ~0u))
    return Ending::badInput("'--" + name + "' does not apply to '" + text.name +
                            "'" +
                            otherName(table, name, unsigned(command), "--"));
  return Ending::badInput("unknown " + text.flagWord + " '" + flag + "'" +
                          suggestion(table, name, unsigned(command), "--"));
}

} // namespace rota
