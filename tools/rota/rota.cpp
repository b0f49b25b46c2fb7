// SPDX-License-Identifier: Apache-2.0
//
// rota: compile, plan and train language models; make and check schedules.
#include "tools/rota/Schedule.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

int main(int argc, char **argv) {
  CLI::App app("Compiles a language model, a device mesh and a pipeline "
               "schedule into a native program that trains the model.");
  app.name("rota");
  app.require_subcommand(1);
  rota::ScheduleOptions schedule;
  CLI::App *scheduleCommand = rota::addScheduleCommand(app, schedule);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
  if (*scheduleCommand)
    return rota::runSchedule(schedule);
  return 0;
}
