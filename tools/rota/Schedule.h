// SPDX-License-Identifier: Apache-2.0
//
// `rota schedule`: make, verify, simulate and draw a timeline, or read one.
#ifndef ROTA_TOOLS_ROTA_SCHEDULE_H
#define ROTA_TOOLS_ROTA_SCHEDULE_H

#include "passes/pipeline/timeline/Simulator.h"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace rota {

/// The verb's options, as on the command line. Numbers that are not given are
/// 1, or those of the file that is read.
struct ScheduleOptions {
  std::string schedule; // a name, or a file that ends in .csv
  std::optional<int> ranks, chunks, microbatches;
  std::optional<std::string> placement; // loop or v
  std::string format = "grid";          // grid, csv, json, svg or trace
  bool json = false;                    // the same as format = "json"
  bool communication = false;
  bool splitBackward = false;
  bool outer = false; // a chunk of layers outside of the pipeline
  std::optional<std::string> weightGather; // per-iteration, once or per-repeat
  std::optional<int> window, prefetch;
  bool offload = false;
  int delay = 1;
  pipe::CostTable costs;
  std::string output; // a file; empty: standard output
};

/// Adds the verb `schedule` to `app`, filling `options` when it is parsed.
CLI::App *addScheduleCommand(CLI::App &app, ScheduleOptions &options);

/// Runs the verb. Returns the process' exit code: 0, or 1 after a message on
/// standard error when the timeline cannot be made, read or written, or is
/// wrong. Nothing is written then.
int runSchedule(const ScheduleOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_SCHEDULE_H
