// SPDX-License-Identifier: Apache-2.0
//
// What options mean together: the mesh, what a verb needs, and numbers that
// must fit each other; and what the compiler and the trainer make of them.
#include "tools/rota/OptionChecks.h"
#include "tools/rota/OptionTable.h"

#include "passes/pipeline/Schedules.h"

#include "llvm/ADT/StringExtras.h"

using namespace rota;
using llvm::StringRef;

static std::string inQuotes(StringRef text) { return "'" + text.str() + "'"; }

/// Reads "data=2,stage=4" into `options.stages`; returns what is wrong with it.
static std::string readMesh(RunOptions &options) {
  static const std::vector<StringRef> axes = {
      "data", "fsdp", "stage", "tensor", "sequence", "context", "expert"};
  std::set<StringRef> seen;
  for (StringRef part : llvm::split(options.mesh, ',')) {
    auto [axis, text] = part.split('=');
    int64_t size = 0;
    if (!part.contains('=') || text.getAsInteger(10, size))
      return "expected AXIS=SIZE, got " + inQuotes(part);
    if (!llvm::is_contained(axes, axis))
      return "expected an axis of " + llvm::join(axes, ", ") + ", got " +
             inQuotes(axis);
    if (!seen.insert(axis).second)
      return "axis " + inQuotes(axis) + " stands twice";
    if (size < 1 || size > 65536)
      return "expected a size from 1 to 65536 for axis " + inQuotes(axis) +
             ", got " + std::to_string(size);
    if (axis == "stage")
      options.stages = size;
    else if (size > 1)
      return "expected size 1 for axis " + inQuotes(axis) + ", got " +
             std::to_string(size) + "; only the stage axis can be larger";
  }
  return "";
}

static std::string checkSchedule(const std::string &schedule) {
  if (StringRef(schedule).ends_with(".csv"))
    return "";
  for (const pipe::Schedule &known : pipe::allSchedules())
    if (schedule == known.name)
      return "";
  return "expected one of " + pipe::scheduleNames() + ", or a .csv file, got " +
         inQuotes(schedule);
}

/// What `verb` cannot do without.
static std::vector<const char *> requiredOptions(Verb verb) {
  switch (verb) {
  case Verb::Probe:
    return {"model", "tokens", "output"};
  case Verb::Train: // whether it needs data depends on the model
  case Verb::Compile:
  case Verb::Plan:
    return {"model"};
  }
  return {};
}

OptionMistake rota::checkOptions(Verb verb, RunOptions &options) {
  for (const char *name : requiredOptions(verb))
    if (!options.given.contains(name))
      return {name, "the option is missing"};
  if (std::string message = readMesh(options); !message.empty())
    return {"mesh", message};
  if (std::string message = checkSchedule(options.schedule); !message.empty())
    return {"schedule", message};
  auto text = [&](const char *name) {
    return valueTexts(*findOption(name), options).front();
  };
  if (options.minLearningRate > options.learningRate)
    return {"min-learning-rate", "expected at most 'learning-rate', got " +
                                     text("min-learning-rate") + " and " +
                                     text("learning-rate")};
  if (options.batchSize % options.microbatches != 0)
    return {"batch-size", "expected a multiple of 'microbatches', got " +
                              std::to_string(options.batchSize) + " and " +
                              std::to_string(options.microbatches)};
  bool isModule = StringRef(options.model).ends_with(".mlir");
  if (verb != Verb::Probe && !isModule)
    for (const char *name : {"batch-size", "sequence-length"})
      if (!options.given.contains(name))
        return {name, "the option is missing; a configuration does not say it"};
  return {};
}

mlir::rota::BuildOptions rota::buildOptions(const RunOptions &options) {
  mlir::rota::BuildOptions build;
  build.sequences = options.batchSize / options.microbatches;
  build.sequenceLength = options.sequenceLength;
  if (options.dtype == "f32")
    build.compute = mlir::rota::ComputeType::F32;
  else if (options.dtype == "bf16")
    build.compute = mlir::rota::ComputeType::BF16;
  return build;
}

std::vector<std::string> rota::trainerArguments(Verb verb,
                                                const RunOptions &options) {
  std::vector<std::string> arguments;
  if (verb == Verb::Probe)
    arguments.push_back("probe");
  for (const OptionSpec &option : optionTable()) {
    if (!(option.trainer & unsigned(verb)))
      continue;
    if (std::holds_alternative<bool RunOptions::*>(option.member)) {
      if (valueTexts(option, options).front() == "true")
        arguments.push_back("--" + option.name);
      continue;
    }
    for (const std::string &text : valueTexts(option, options)) {
      arguments.push_back("--" + option.name);
      arguments.push_back(text);
    }
  }
  return arguments;
}
