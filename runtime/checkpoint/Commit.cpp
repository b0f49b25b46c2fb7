// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Commit.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/BestValidation.h"
#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/files/WriteFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace rota {

[[noreturn]] static void fail(const char *verb, const fs::path &path,
                              const std::string &why) {
  throw RunError(fmt::format("cannot {} '{}': {}", verb, path.string(), why));
}

static void check(const char *verb, const fs::path &path,
                  const std::error_code &error) {
  if (error)
    fail(verb, path, error.message());
}

/// Brings the folder's names to disk.
static void syncFolder(const fs::path &path) {
  int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0)
    fail("open", path, std::strerror(errno));
  // Some file systems sync no folders.
  int why = fsync(file) != 0 && errno != EINVAL ? errno : 0;
  close(file);
  if (why != 0)
    fail("write", path, std::strerror(why));
}

static void renameFolder(const fs::path &from, const fs::path &to) {
  std::error_code error;
  fs::rename(from, to, error);
  check("rename", from, error);
}

static void removeTree(const fs::path &path) {
  std::error_code error;
  fs::remove_all(path, error);
  check("remove", path, error);
}

/// Removes a checkpoint. It loses its name first, so that none is found that
/// has lost some of its files.
static void removeCheckpoint(const fs::path &folder, int64_t step) {
  fs::path removed = folder / removedName(step);
  renameFolder(folder / checkpointName(step), removed);
  syncFolder(folder);
  removeTree(removed);
}

void makePartialFolder(const std::string &folder, int64_t step) {
  fs::path path = fs::path(folder) / partialName(step);
  std::error_code error;
  fs::create_directory(path, error);
  check("create", path, error);
}

void commitCheckpoint(const std::string &folder, const Manifest &manifest) {
  fs::path root(folder);
  fs::path partial = root / partialName(manifest.run.step);
  fs::path whole = root / checkpointName(manifest.run.step);
  writeFile((partial / kManifestFile).string(), {toJson(manifest)});
  syncFolder(partial);
  std::error_code error;
  bool isReplaced = fs::exists(whole, error);
  check("read", whole, error);
  if (isReplaced)
    removeCheckpoint(root, manifest.run.step);
  renameFolder(partial, whole);
  syncFolder(root);
}

/// By the manifest and the sizes of the files.
static bool isWhole(const fs::path &checkpoint) {
  try {
    Checkpoint whole(checkpoint.string());
    return true;
  } catch (const DamagedCheckpoint &) {
    return false;
  }
}

void removeOldCheckpoints(const std::string &folder, const RunState &run,
                          const KeepRules &rules) {
  std::optional<BestValidation> best;
  if (rules.best)
    best = bestValidation(run);
  std::vector<int64_t> steps = checkpointsIn(folder);
  if (static_cast<int64_t>(steps.size()) <= rules.last)
    return;
  int64_t kept = 0; // whole ones up to that of `run`
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    if (*it > run.step)
      continue;
    if (kept < rules.last) {
      kept +=
          *it == run.step || isWhole(fs::path(folder) / checkpointName(*it));
      continue;
    }
    bool isDue = rules.every > 0 && *it % rules.every == 0;
    if (!isDue && !(best && best->step == *it))
      removeCheckpoint(folder, *it);
  }
}

void removeUnfinished(const std::string &folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (isUnfinished(entry->path().filename().string()))
      found.push_back(entry->path());
  check("read", folder, error);
  for (const fs::path &path : found)
    removeTree(path);
}

} // namespace rota
