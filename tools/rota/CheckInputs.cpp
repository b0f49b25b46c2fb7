// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions, since the runtime's readers report by them; they do
// not leave this file.
#include "tools/rota/CheckInputs.h"

#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/data/DataPaths.h"
#include "runtime/data/TokenFormat.h"
#include "runtime/files/WriteFile.h"
#include "runtime/train/RunData.h"
#include "runtime/train/rank/Launch.h"
#include "runtime/train/state/Identity.h"

#include <filesystem>
#include <fmt/format.h>

namespace rota {

static void checkData(const std::vector<std::string> &items,
                      const RunOptions &options) {
  for (const SourcePaths &source : findSources(items))
    for (const std::string &file : source.files)
      findTokens(DataFile(file, /*keepOpen=*/false), options.tokenType);
}

/// The newest checkpoint that a training run may go on from, with a whole
/// manifest; null where it begins anew.
static std::unique_ptr<Checkpoint> newestCheckpoint(const RunOptions &options) {
  const std::string &from = options.resume.from;
  const std::string &own = options.checkpoints.folder;
  bool isAuto = from == ResumeOptions::kAuto;
  if (from == ResumeOptions::kNever || (isAuto && own.empty()))
    return nullptr;
  for (const std::string &folder :
       isAuto ? findCheckpoints(own) : checkpointsAt(from))
    try {
      return std::make_unique<Checkpoint>(folder);
    } catch (const DamagedCheckpoint &) { // the trainer names it
    }
  return nullptr;
}

static void checkTraining(const RunOptions &options) {
  if (std::unique_ptr<Checkpoint> checkpoint = newestCheckpoint(options))
    checkOptionIdentity(*checkpoint, options);
  if (findLaunch().process == 0)
    for (const std::string *path : {&options.save, &options.trace})
      if (!path->empty())
        checkWritable(*path);
}

bool checkInputs(Command verb, const RunOptions &options, std::string &error) {
  try {
    for (const auto *items : {&options.data, &options.validation.data})
      if (!items->empty())
        checkData(*items, options);
    // Weights in several files have a folder or an index.
    std::error_code unknown;
    if (std::filesystem::path weights(options.weights);
        weights.extension() == ".safetensors" &&
        !std::filesystem::is_directory(weights, unknown))
      SafetensorsFile file(options.weights);
    if (verb == Command::Train)
      checkTraining(options);
    return true;
  } catch (const std::exception &failure) {
    error = failure.what();
    return false;
  }
}

bool checkDataGiven(bool takesTokens, const RunOptions &options,
                    std::string &error) {
  try {
    requireData(takesTokens, options);
    return true;
  } catch (const InputError &failure) {
    error = failure.what();
    return false;
  }
}

std::optional<int64_t> finishedSteps(const RunOptions &options) {
  if (options.json || options.profile || !options.metrics.folder.empty() ||
      !options.save.empty() || !options.trace.empty())
    return std::nullopt;
  try {
    std::unique_ptr<Checkpoint> checkpoint = newestCheckpoint(options);
    int64_t last = options.stopAfter > 0 ? options.stopAfter : options.steps;
    if (!checkpoint || checkpoint->manifest().run.step < last ||
        !wrongPieces(*checkpoint).empty())
      return std::nullopt;
    return checkpoint->manifest().run.step;
  } catch (const std::exception &) { // the trainer names it
    return std::nullopt;
  }
}

bool checkOutput(const std::string &path, std::string &error) {
  try {
    checkWritable(path);
    return true;
  } catch (const InputError &failure) {
    error = failure.what();
    return false;
  }
}

ExitCode reportErrors(const std::function<void()> &work) {
  try {
    work();
    return kExitSuccess;
  } catch (const InputError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kExitBadInput;
  } catch (const std::exception &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kExitRunFailed;
  }
}

} // namespace rota
