// SPDX-License-Identifier: Apache-2.0
//
// Reads command lines of verbs for tests.
#ifndef ROTA_TEST_TOOLS_ROTA_OPTIONSTEST_H
#define ROTA_TEST_TOOLS_ROTA_OPTIONSTEST_H

#include "test/runtime/TemporaryFolder.h"
#include "tools/rota/options/OptionTable.h"

#include "gtest/gtest.h"

namespace rota {

class OptionsTest : public ::testing::Test {
protected:
  /// Reads arguments after the verb; `said` holds what was printed.
  std::optional<int> parse(Command verb, std::vector<std::string> arguments) {
    std::vector<const char *> pointers;
    for (const std::string &argument : arguments)
      pointers.push_back(argument.c_str());
    options = RunOptions();
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    auto code =
        parseRunOptions(verb, int(pointers.size()), pointers.data(), options);
    printed = testing::internal::GetCapturedStdout();
    said = testing::internal::GetCapturedStderr();
    return code;
  }

  /// Expects `rota train` with what it needs and `arguments` to be refused with
  /// `message`.
  void refuse(std::vector<std::string> arguments, const std::string &message) {
    std::vector<std::string> all = {
        "--model",           "m", "--data", "d", "--batch-size", "8",
        "--sequence-length", "16"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    EXPECT_EQ(parse(Command::Train, all), std::optional<int>(kExitBadInput));
    EXPECT_EQ(said, "error: " + message + "\n");
  }

  std::string runFile(const std::string &text) {
    return folder.write("run.json", text);
  }

  void refuseFile(const std::string &text, const std::string &place,
                  const std::string &message) {
    std::string path = runFile(text);
    EXPECT_EQ(parse(Command::Train, {path}), std::optional<int>(kExitBadInput));
    EXPECT_EQ(said, "error: " + path + place + ": " + message + "\n");
  }

  // A folder of this process alone: CTest runs the tests of one program side by
  // side.
  test::TemporaryFolder folder;
  RunOptions options;
  std::string said, printed;
};

} // namespace rota

#endif // ROTA_TEST_TOOLS_ROTA_OPTIONSTEST_H
