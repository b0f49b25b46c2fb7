// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions, since the reader of checkpoints reports by them;
// they do not leave this file.
#include "tools/rota/CheckpointModel.h"

#include "runtime/checkpoint/AdapterContents.h"
#include "runtime/files/WriteFile.h"
#include "runtime/program/IdentityKeys.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace rota {

CheckpointModel::~CheckpointModel() {
  std::error_code ignored;
  if (!folder.empty())
    fs::remove_all(folder, ignored);
}

/// Whether the path leads to no model, so that it has to be of checkpoints.
static bool hasNoModel(const std::string &path) {
  std::error_code unknown;
  return !fs::exists(fs::is_directory(path, unknown)
                         ? fs::path(path) / "config.json"
                         : fs::path(path),
                     unknown);
}

static bool hasCheckpoints(const std::string &path) {
  return isCheckpoint(path) || !findCheckpoints(path).empty();
}

/// The number of the run's identity, where the options have none.
template <typename Number>
static void settle(Number &option, const Manifest &manifest, const char *key) {
  auto found = manifest.identity.find(key);
  if (option == 0 && found != manifest.identity.end())
    std::from_chars(found->second.data(),
                    found->second.data() + found->second.size(), option);
}

void CheckpointModel::take(const std::string &path, RunOptions &options) {
  Checkpoint checkpoint(checkpointsAt(path).front());
  const Manifest &manifest = checkpoint.manifest();
  options.checkpoint = checkpoint.folder();
  mlir::rota::BuildOptions &build = options.compiler.build;
  // A module has its shapes, its types and its experts' capacity in it.
  bool isModule = options.compiler.model.ends_with(".mlir");
  if (!isModule) {
    settle(options.batchSize, manifest, identity::kBatchSize);
    settle(build.sequenceLength, manifest, identity::kSequenceLength);
  }
  if (!isModule && !options.given.contains(identity::kExpertCapacity))
    settle(build.experts.capacity, manifest, identity::kExpertCapacity);
  if (!isModule && manifest.identity.contains(identity::kDocumentMask)) {
    int32_t end = 0;
    settle(end, manifest, identity::kDocumentMask);
    build.documentEnd = end;
  }
  if (std::optional<AdapterFacts> adapters = adaptersOf(manifest);
      adapters && !isModule && build.adapters.rank == 0)
    build.adapters = {adapters->rank, adapters->alpha, adapters->targets};
  if (auto type = manifest.identity.find(identity::kDtype);
      !isModule && !build.compute && type != manifest.identity.end())
    build.compute = type->second == "BF16" ? mlir::rota::ComputeType::BF16
                                           : mlir::rota::ComputeType::F32;
  if (!options.compiler.model.empty())
    return;
  if (manifest.config.empty())
    throw InputError(fmt::format("'{}': expected a checkpoint with the model's "
                                 "configuration; '--model' names the model",
                                 checkpoint.folder()));
  std::error_code error;
  std::string pattern =
      (fs::temp_directory_path(error) / "rota-XXXXXX").string();
  if (!error && !mkdtemp(pattern.data()))
    error.assign(errno, std::generic_category());
  if (error)
    throw InputError(fmt::format("cannot make a temporary folder: {}; TMPDIR "
                                 "names the place for it",
                                 error.message()));
  folder = pattern;
  // Its folder's name is the model's name for people.
  fs::path place = fs::path(checkpoint.folder()).lexically_normal();
  options.compiler.model = (fs::path(folder) / place.filename()).string();
  fs::create_directory(options.compiler.model);
  writeFile((fs::path(options.compiler.model) / "config.json").string(),
            {manifest.config});
}

bool CheckpointModel::find(RunOptions &options, std::string &error) {
  try {
    std::string &model = options.compiler.model;
    if (options.checkpoint.empty() && !model.empty() &&
        options.compiler.build.config.empty() && hasNoModel(model)) {
      std::error_code unreadable;
      if ((!fs::exists(model, unreadable) && !unreadable) ||
          !hasCheckpoints(model))
        throw InputError(fmt::format(
            "'model': expected a checkpoint, a folder of checkpoints, a hub "
            "folder, a .json configuration or a .mlir file, got '{}'",
            model));
      options.checkpoint = std::exchange(model, "");
    }
    if (!options.checkpoint.empty())
      take(options.checkpoint, options);
  } catch (const std::exception &failure) {
    error = failure.what();
    return false;
  }
  if (options.compiler.model.empty())
    error = "'model': the option is missing, and so is a checkpoint";
  return error.empty();
}

bool CheckpointModel::complete(RunOptions &options, std::string &error) {
  if (!find(options, error))
    return false;
  bool isModule = options.compiler.model.ends_with(".mlir");
  if (!isModule && options.batchSize == 0)
    error = "'batch-size': the option is missing; a configuration does not "
            "say it";
  else if (!isModule && options.compiler.build.sequenceLength == 0)
    error = "'sequence-length': the option is missing; a configuration does "
            "not say it";
  else if (options.batchSize % options.compiler.schedule.microbatches != 0)
    error = fmt::format("'batch-size': expected a multiple of 'microbatches', "
                        "got {} and {}",
                        options.batchSize, microbatchesText(options));
  return error.empty();
}

} // namespace rota
