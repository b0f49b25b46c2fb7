// SPDX-License-Identifier: Apache-2.0
//
// The text of run.json: everything about a run that is known before its first
// step.
#ifndef ROTA_RUNTIME_METRICS_RUNDESCRIPTION_H
#define ROTA_RUNTIME_METRICS_RUNDESCRIPTION_H

#include "runtime/options/Option.h"
#include "runtime/program/Program.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rota {

/// The most actions of all stages whose planned times run.json lists.
inline constexpr int64_t kMostPlannedActions = 20000;

/// Facts that are not the program's.
struct RunFacts {
  std::string device;              // Device::name
  std::string data;                // for people
  int64_t tokensPerStep = 0;       // on all ranks
  std::optional<double> peakFlops; // see Utilization.h
  double plannedBubble = 0.0;      // see StepBarrier.h
  bool hasStepBarrier = true;      // see StepBarrier.h
  const std::vector<Option> &options;
};

/// "8 ranks (data=2,stage=4)"; "4 ranks" where the pipeline alone has ranks.
std::string ranksText(const Program &program);
/// The program's mesh as an object: the size of each axis by its name.
nlohmann::ordered_json meshJson(const Program &program);
/// The bytes of a rank's memory, on its device and on the host, by their use.
nlohmann::ordered_json usesJson(const Stage &stage);

/// A JSON object: the program, the values of the options, for each stage the
/// bytes of its memory by use, and, in seconds of the machine that the compiler
/// assumes, the time of a step of the run, the timeline ("planned": [name,
/// kind, begin, end] of each action) and its transfers by kind ("transfers":
/// count, seconds and exposed).
std::string describeRun(const Program &program, const RunFacts &facts);

} // namespace rota

#endif // ROTA_RUNTIME_METRICS_RUNDESCRIPTION_H
