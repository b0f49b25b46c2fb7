// SPDX-License-Identifier: Apache-2.0
//
// The flags of a command, as a table of options says them.
#ifndef ROTA_RUNTIME_OPTIONS_COMMANDLINE_H
#define ROTA_RUNTIME_OPTIONS_COMMANDLINE_H

#include "runtime/options/Option.h"

#include <map>

namespace rota {

/// Why a program ends before it works: help that was asked for (exit code 0),
/// or an error in the arguments.
struct Ending {
  int exitCode;
  std::string text;

  static Ending badInput(const std::string &message);
  /// Prints help to standard output, an error to standard error; returns the
  /// exit code.
  int print() const;
};

/// "TYPE [default]": the text for the option's value in help.
std::string valueHelp(const Option &option);
/// The help of the option, with the names that it takes.
std::string helpOf(const Option &option);

struct CommandText {
  std::string name; // as it is called: "rota train"
  std::string description;
  // The argument without a flag; empty: there is none.
  std::string positional = "", positionalHelp = "";
  std::string flagWord = "flag"; // word for an unknown flag in messages
  std::vector<std::string> examples = {}; // command lines at the end of help
  // Mask of other commands, whose options are read too but not in the help.
  unsigned accepted = 0;
};

class CommandLine {
public:
  /// Accepts the options of `table` that `command` takes.
  CommandLine(const std::vector<Option> &table, Command command,
              CommandText text);

  /// Reads the arguments after the command's name. Sets nothing yet.
  std::optional<Ending> read(std::vector<std::string> arguments);

  /// The arguments without a flag.
  std::vector<std::string> positional;

  /// Adds a text to those that were given for the option.
  void add(const std::string &option, const std::string &text);

  /// Sets the options that were given and adds their names to `given`.
  std::optional<Ending> assign(std::set<std::string, std::less<>> &given) const;

  /// The options that were given and that the command accepts without need.
  std::vector<std::string> unneeded() const;

  /// The error for options that are missing, with the last example.
  Ending missing(const std::vector<std::string> &options) const;

private:
  std::optional<Ending> parse(std::vector<std::string> arguments,
                              std::vector<std::string> &unknown);
  Ending unknownWord(const std::string &word) const;
  unsigned mask() const { return unsigned(command) | text.accepted; }

  const std::vector<Option> &table;
  Command command;
  CommandText text;
  std::map<std::string, std::vector<std::string>> texts; // by option
};

} // namespace rota

#endif // ROTA_RUNTIME_OPTIONS_COMMANDLINE_H
