// SPDX-License-Identifier: Apache-2.0
//
// rota: compile, plan and train language models; make and check schedules.
#include "tools/rota/Schedule.h"
#include "tools/rota/Verbs.h"

#include <CLI/CLI.hpp>
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

static int scheduleMain(int argc, char **argv) {
  CLI::App app;
  app.name("rota");
  app.require_subcommand(1);
  ScheduleOptions options;
  CLI::App *command = addScheduleCommand(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    fmt::print("{}", command->help("rota schedule"));
    return ExitSuccess;
  } catch (const CLI::ParseError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return ExitBadInput;
  }
  return runSchedule(options);
}

/// Parses the flags after the verb and runs it.
static int modelMain(Verb verb, int argc, char **argv) {
  RunOptions options;
  if (std::optional<int> code =
          parseRunOptions(verb, argc - 2, argv + 2, options))
    return *code;
  switch (verb) {
  case Verb::Train:
    return runTrain(options);
  case Verb::Compile:
    return runCompile(options);
  case Verb::Plan:
    return runPlan(options);
  case Verb::Probe:
    return runProbe(std::move(options));
  }
  return ExitBadInput;
}

int main(int argc, char **argv) {
  std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "--help" || verb == "-h" || verb == "help") {
    fmt::print("{}", kUsage);
    return ExitSuccess;
  }
  if (verb == "schedule")
    return scheduleMain(argc, argv);
  constexpr std::pair<std::string_view, Verb> verbs[] = {
      {"train", Verb::Train},
      {"compile", Verb::Compile},
      {"plan", Verb::Plan},
      {"probe", Verb::Probe}};
  for (auto [name, value] : verbs)
    if (verb == name)
      return modelMain(value, argc, argv);
  fmt::print(stderr,
             "error: expected a verb out of train, compile, plan, schedule, "
             "probe, got {}\n",
             verb.empty() ? "none" : fmt::format("'{}'", verb));
  return ExitBadInput;
}
