// SPDX-License-Identifier: Apache-2.0
//
// rota: compile, plan and train language models; make and check schedules.
#include "tools/rota/Verbs.h"

#include <fmt/format.h>

using namespace rota;

static constexpr const char *kUsage =
    R"(Compiles a language model, a device mesh and a pipeline schedule into a native
program that trains the model.

Usage: rota VERB [RUN.json] [flags]

  train      compile a trainer and run it here
  compile    write a native trainer, or any level of IR
  plan       parameters, operations, memory by rank and use, timeline
  schedule   make, verify, simulate and draw a timeline, or read one
  probe      run a few steps on given tokens and write named tensors

`rota VERB --help` lists the verb's flags. Exit codes: 0 success, 1 the work
failed, 2 bad arguments or input.
)";

/// Parses the flags after the verb and runs it.
static int runVerb(Command verb, int argc, char **argv) {
  RunOptions options;
  if (std::optional<int> code =
          parseRunOptions(verb, argc - 2, argv + 2, options))
    return *code;
  switch (verb) {
  case Command::Train:
    return runTrain(options);
  case Command::Compile:
    return runCompile(options);
  case Command::Plan:
    return runPlan(options);
  case Command::Probe:
    return runProbe(std::move(options));
  case Command::Schedule:
    return runSchedule(options);
  }
  return kExitBadInput;
}

int main(int argc, char **argv) {
  std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "--help" || verb == "-h" || verb == "help") {
    fmt::print("{}", kUsage);
    return kExitSuccess;
  }
  constexpr std::pair<std::string_view, Command> verbs[] = {
      {"train", Command::Train},
      {"compile", Command::Compile},
      {"plan", Command::Plan},
      {"schedule", Command::Schedule},
      {"probe", Command::Probe}};
  for (auto [name, value] : verbs)
    if (verb == name)
      return runVerb(value, argc, argv);
  fmt::print(stderr,
             "error: expected a verb out of train, compile, plan, schedule, "
             "probe, got {}\n",
             verb.empty() ? "none" : fmt::format("'{}'", verb));
  return kExitBadInput;
}
