// SPDX-License-Identifier: Apache-2.0
//
// The help of verbs: its options, its examples and its lines.
#include "test/tools/rota/OptionsTest.h"

#include <cstdlib>
#include <filesystem>

using namespace rota;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

/// The text after "Examples:" in the help of `verb`.
static std::vector<std::string> examplesIn(StringRef help) {
  SmallVector<StringRef> lines;
  help.split("Examples:\n").second.split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::vector<std::string> examples;
  for (StringRef line : lines)
    examples.push_back(line.trim().str());
  return examples;
}

TEST_F(OptionsTest, ExamplesOfHelpAreRead) {
  std::filesystem::current_path(folder.path(""));
  std::filesystem::create_directory("run1");
  std::filesystem::create_directory_symlink(ROTA_SOURCE_DIR "/models",
                                            "models");
  for (Command verb :
       {Command::Train, Command::Compile, Command::Plan, Command::Probe,
        Command::Schedule, Command::Checkpoint, Command::Convert, Command::Eval,
        Command::Generate, Command::Report, Command::Machine, Command::Tokenize,
        Command::Detokenize}) {
    EXPECT_EQ(parse(verb, {"--help"}), std::optional<int>(kExitSuccess));
    std::vector<std::string> examples = examplesIn(printed);
    EXPECT_EQ(examples.size(), 2u) << printed;
    for (const std::string &example : examples) {
      SmallVector<StringRef> words;
      StringRef(example).split(words, ' ');
      std::vector<std::string> arguments(words.begin() + 2, words.end());
      EXPECT_EQ(parse(verb, arguments), std::nullopt) << example << said;
    }
  }
}

TEST_F(OptionsTest, HelpListsEveryOptionOfTheVerb) {
  RunOptions unset;
  const std::vector<Option> table = optionTable(unset);
  for (Command verb : {Command::Train, Command::Compile, Command::Plan,
                       Command::Probe, Command::Schedule}) {
    EXPECT_EQ(parse(verb, {"--help"}), std::optional<int>(kExitSuccess));
    for (const Option &option : table) {
      bool isListed =
          printed.find("--" + option.name + " ") != std::string::npos ||
          printed.find("--" + option.name + "\n") != std::string::npos;
      EXPECT_EQ(isListed,
                findOption(table, option.name, unsigned(verb)) != nullptr)
          << option.name;
    }
  }
}

TEST_F(OptionsTest, HelpFitsTheTerminal) {
  setenv("COLUMNS", "62", 1);
  std::optional<int> code = parse(Command::Train, {"--help"});
  unsetenv("COLUMNS");
  EXPECT_EQ(code, std::optional<int>(kExitSuccess));
  auto [options, examples] = StringRef(printed).split("Examples:\n");
  for (StringRef line : llvm::split(options, '\n'))
    EXPECT_LE(line.size(), 62u) << line.str();
  EXPECT_TRUE(options.contains(
      "  --lora-alpha X [0]    The alpha of adapters (twice the rank;\n"
      "                        that of 'adapter')\n"))
      << options.str();
  EXPECT_NE(examples.find("  rota train --model models/configs/tiny --data "
                          "english.txt --batch-size 16 --sequence-length 256 "
                          "--mesh stage=4\n"),
            StringRef::npos);
}

} // namespace
