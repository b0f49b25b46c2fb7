// SPDX-License-Identifier: Apache-2.0
//
// Random RUN.json files: an input is a byte, the command, and the file. Either
// the file is refused, or the trainer reads the options that it is started with
// as the same values.
#include "test/fuzz/FuzzFiles.h"
#include "tools/rota/options/RunOptions.h"

#include <cstdio>
#include <cstdlib>

using namespace rota;
using namespace rota::test;

static void require(bool holds, const std::string &what) {
  if (holds)
    return;
  std::fprintf(stdout, "%s\n", what.c_str());
  std::fflush(stdout);
  std::abort();
}

/// The options of the trainer with their values, a line for each.
static std::string textOf(Command command, Options &options) {
  std::string text;
  for (const Option &option : trainOptions(options))
    if (option.commands & unsigned(command)) {
      text += option.name + ":";
      for (const std::string &value : valueTexts(option))
        text += " '" + value + "'";
      text += "\n";
    }
  return text;
}

static void readAsTrainer(Command command, RunOptions &options) {
  Options read;
  read.optimizer.own = options.optimizer.own;
  std::vector<Option> table = trainOptions(read);
  CommandLine line(table, command, {"trainer", "", "", "", "argument"});
  std::set<std::string, std::less<>> given;
  std::vector<std::string> arguments = trainerArguments(command, options);
  if (command != Command::Train)
    arguments.erase(arguments.begin()); // its name
  auto ending = line.read(arguments);
  if (!ending)
    ending = line.assign(given);
  require(!ending, ending ? ending->text : "");
  OptionMistake mistake = checkTrainOptions(read);
  require(mistake.option.empty(), mistake.option + ": " + mistake.message);
  std::string expected = textOf(command, options), got = textOf(command, read);
  require(expected == got, "expected\n" + expected + "got\n" + got);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr Command commands[] = {Command::Train, Command::Compile,
                                  Command::Plan,  Command::Probe,
                                  Command::Eval,  Command::Generate};
  FuzzInput input(data, size);
  Command command = commands[input.byte() % std::size(commands)];
  std::string path = fuzzFolder().write("run.json", std::string(input.last()));
  const char *arguments[] = {path.c_str()};
  RunOptions options;
  if (std::optional<int> code =
          parseRunOptions(command, 1, arguments, options)) {
    require(*code == kExitBadInput, std::to_string(*code));
    return 0;
  }
  if (command != Command::Compile && command != Command::Plan)
    readAsTrainer(command, options);
  return 0;
}
