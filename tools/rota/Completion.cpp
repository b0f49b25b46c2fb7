// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Completion.h"

#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/options/CommandLine.h"
#include "tools/planner/Machines.h"
#include "tools/rota/options/OptionTable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace rota;
using Words = std::vector<std::string>;

/// The script up to the rows of the tables. The shell cuts a word at '=', so
/// that a value after "--flag=" is a word of its own. An empty answer leaves
/// the word to the names of files.
static constexpr const char *kBegin =
    R"(# Completes rota in bash; made by `rota completion bash`.
_rota() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local verb=${COMP_WORDS[1]} words= prefix=
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
)";

static constexpr const char *kEnd =
    R"(  [ "$COMP_CWORD" != 1 ] || words="$verbs help --help --version"
  COMPREPLY=($(compgen -P "$prefix" -W "$words" -- "$word"))
}
complete -o bashdefault -o default -F _rota rota
)";

static Words scheduleWords() {
  Words names;
  for (const pipe::Schedule &schedule : pipe::allSchedules())
    names.push_back(schedule.name);
  return names;
}

/// The names that the option takes, files besides.
static Words wordsOf(const Option &option) {
  if (option.name == "schedule" || option.name == "compare")
    return scheduleWords();
  if (option.name == "machine")
    return machineNames();
  return choicesOf(option);
}

/// The words that may follow the verb.
static Words wordsAfter(Command verb) {
  if (verb == Command::Schedule)
    return scheduleWords();
  std::span<const std::string_view> actions = actionsOf(verb);
  return {actions.begin(), actions.end()};
}

/// Cases of the word before, first those that are no flags.
static void printValues(const std::vector<Option> &table) {
  fmt::print("  case $before in\n"
             "  help)\n    words=$verbs\n    ;;\n"
             "  show)\n    words='{}'\n    ;;\n",
             fmt::join(machineNames(), " "));
  for (const Option &option : table) {
    Words words = wordsOf(option);
    if (words.empty())
      continue;
    fmt::print("  --{})\n    words='{}'\n", option.name, fmt::join(words, " "));
    // The last element of a list is completed.
    if (option.isList())
      fmt::print("    if [[ $word = *,* ]]; then\n"
                 "      prefix=${{word%,*}},\n"
                 "      word=${{word##*,}}\n"
                 "    fi\n");
    fmt::print("    ;;\n");
  }
}

/// The case of the verb: its flags, and what may follow it.
static void
printFlags(const std::vector<Option> &table,
           std::span<const std::pair<Command, std::string_view>> verbs) {
  fmt::print("    case $verb in\n");
  for (auto [command, name] : verbs) {
    Words flags{"--help"};
    for (const Option &option : table)
      if (option.commands & unsigned(command))
        flags.push_back("--" + option.name);
    fmt::print("    {})\n", name);
    if (Words words = wordsAfter(command); !words.empty())
      fmt::print("      [ \"$COMP_CWORD\" != 2 ] || words='{}'\n",
                 fmt::join(words, " "));
    fmt::print("      [[ $word != -* ]] || words='{}'\n      ;;\n",
               fmt::join(flags, " "));
  }
  fmt::print("    esac\n");
}

int rota::printCompletion(
    std::string_view shell,
    std::span<const std::pair<Command, std::string_view>> verbs) {
  if (shell != "bash")
    return Ending::badInput(
               "expected the shell bash, got " +
               (shell.empty() ? "nothing" : "'" + std::string(shell) + "'"))
        .print();
  RunOptions options;
  std::vector<Option> table = optionTable(options);
  Words names;
  for (auto [command, name] : verbs)
    names.emplace_back(name);
  fmt::print("{}  local verbs='{}'\n", kBegin, fmt::join(names, " "));
  printValues(table);
  fmt::print("  *)\n");
  printFlags(table, verbs);
  fmt::print("    ;;\n  esac\n{}", kEnd);
  return kExitSuccess;
}
