// SPDX-License-Identifier: Apache-2.0
//
// `rota train`: compile a trainer and become it. Compiled with exceptions, by
// which the runtime reports; they do not leave this file.
#include "runtime/train/rank/Launch.h"
#include "tools/rota/Compile.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/data/Prompt.h"

namespace rota {

/// Makes tokens of the prompt of samples, and starts the process that makes
/// text of theirs. Throws InputError or RunError.
static void preparePrompt(RunOptions &options) {
  if (options.given.contains("sample-prompt")) {
    if (options.samples.isOn())
      throw InputError(
          "'sample-prompt': expected no 'prompt-tokens' beside it");
    Prompt prompt(options, "sample-prompt", options.samplePrompt);
    options.samples.prompt.assign(prompt.tokens().begin(),
                                  prompt.tokens().end());
    if (findLaunch().process == 0)
      options.samples.decoder = startDecoder(prompt);
    findStopTokens(options, &prompt);
  } else if (options.samples.isOn()) {
    findStopTokens(options, nullptr);
  }
  if (OptionMistake mistake = checkPrompt(options.samples);
      !mistake.option.empty())
    throw InputError("'" + mistake.option + "': " + mistake.message);
}

int runTrain(const RunOptions &given) {
  RunOptions options = given;
  try {
    preparePrompt(options);
  } catch (const std::exception &error) {
    return reportBadInput(error.what());
  }
  return compileThenRun(Command::Train, std::move(options));
}

} // namespace rota
