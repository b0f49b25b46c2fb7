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
#include "runtime/train/rank/Launch.h"

#include <filesystem>

namespace rota {

static void checkData(const std::vector<std::string> &items,
                      const RunOptions &options) {
  for (const SourcePaths &source : findSources(items))
    for (const std::string &file : source.files)
      findTokens(DataFile(file, /*keepOpen=*/false), options.tokenType);
}

static void checkTraining(const RunOptions &options) {
  const std::string &from = options.resume.from;
  if (from != ResumeOptions::kAuto && from != ResumeOptions::kNever)
    checkpointsAt(from);
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
    if (std::filesystem::path weights(options.weights);
        weights.extension() == ".safetensors" &&
        !std::filesystem::is_directory(weights))
      SafetensorsFile file(options.weights);
    if (verb == Command::Train)
      checkTraining(options);
    return true;
  } catch (const std::exception &failure) {
    error = failure.what();
    return false;
  }
}

} // namespace rota
