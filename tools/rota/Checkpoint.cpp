// SPDX-License-Identifier: Apache-2.0
//
// The verb checkpoint. Compiled with exceptions, since the reader of
// checkpoints reports by them; they do not leave this file.
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Verbs.h"

#include "runtime/checkpoint/BestValidation.h"
#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {
namespace {

/// When the manifest was written, which is the last file: "2026-01-31 23:59:59"
/// UTC; empty when it is not known.
std::string timeOf(const std::string &folder) {
  std::error_code error;
  auto time = std::filesystem::last_write_time(
      std::filesystem::path(folder) / kManifestFile, error);
  if (error)
    return "";
  std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(
          std::chrono::file_clock::to_sys(time)));
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", std::gmtime(&seconds));
  return text;
}

std::string nameOf(const std::string &folder) {
  return std::filesystem::path(folder).filename().string();
}

/// A line for each checkpoint with what findDamage says. The newest one tells
/// which of them is that of the best validation. Returns the number of damaged
/// ones.
int64_t printList(
    const std::vector<std::string> &folders, bool json,
    const std::function<std::vector<std::string>(Checkpoint &)> &findDamage) {
  int64_t damagedCount = 0;
  std::optional<BestValidation> best;
  if (!json)
    fmt::print("{:<16} {:<19} {:>16}  {}\n", "checkpoint", "time (UTC)",
               "bytes", "state");
  for (const std::string &folder : folders) {
    std::vector<std::string> damage;
    ordered_json line = {{"checkpoint", folder}, {"time", timeOf(folder)}};
    std::string bytes = "-";
    bool isBest = false;
    try {
      Checkpoint checkpoint(folder);
      const RunState &run = checkpoint.manifest().run;
      line["step"] = run.step;
      if (!best)
        best = bestValidation(run);
      isBest = best && best->step == run.step;
      line["bytes"] = checkpoint.bytes();
      bytes = grouped(checkpoint.bytes());
      damage = findDamage(checkpoint);
    } catch (const InputError &error) {
      damage.push_back(error.what());
    }
    line["best"] = isBest;
    line["whole"] = damage.empty();
    line["damage"] = damage;
    damagedCount += !damage.empty();
    if (json) {
      fmt::print("{}\n", jsonText(line));
      continue;
    }
    fmt::print("{:<16} {:<19} {:>16}  {}{}\n", nameOf(folder), timeOf(folder),
               bytes, damage.empty() ? "whole" : "damaged",
               isBest
                   ? fmt::format(", best validation: loss {:.4f}", best->loss)
                   : "");
    for (const std::string &message : damage)
      fmt::print("  {}\n", message);
  }
  return damagedCount;
}

ordered_json manifestJson(const Checkpoint &checkpoint) {
  const Manifest &manifest = checkpoint.manifest();
  ordered_json tensors = ordered_json::array();
  for (const SavedTensor &tensor : manifest.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"pieces", tensor.pieces.size()}});
  return {{"checkpoint", checkpoint.folder()},
          {"time", timeOf(checkpoint.folder())},
          {"bytes", checkpoint.bytes()},
          {"files", manifest.files.size()},
          {"step", manifest.run.step},
          {"sequences", manifest.run.sequences},
          {"values", manifest.run.values},
          {"identity", manifest.identity},
          {"has_config", !manifest.config.empty()},
          {"tensors", tensors}};
}

void showTensors(const std::vector<SavedTensor> &tensors) {
  std::string title = counted(std::ssize(tensors), "tensor");
  size_t names = title.size(), types = 4, shapes = 5;
  for (const SavedTensor &tensor : tensors) {
    names = std::max(names, tensor.name.size() + 2);
    types = std::max(types, tensor.type.size());
    shapes = std::max(shapes, shapeText(tensor.shape).size());
  }
  auto line = [&](const auto &name, const auto &type, const auto &shape,
                  const auto &pieces) {
    fmt::print("{:<{}}  {:<{}}  {:<{}}  {:>6}\n", name, names, type, types,
               shape, shapes, pieces);
  };
  fmt::print("\n");
  line(title, "type", "shape", "pieces");
  for (const SavedTensor &tensor : tensors)
    line("  " + tensor.name, tensor.type, shapeText(tensor.shape),
         tensor.pieces.size());
}

void show(const Checkpoint &checkpoint, bool json) {
  if (json)
    return fmt::print("{}\n", jsonText(manifestJson(checkpoint), 2));
  const Manifest &manifest = checkpoint.manifest();
  fmt::print("{}: step {}, {} of data, {} bytes in {}\n", checkpoint.folder(),
             manifest.run.step, counted(manifest.run.sequences, "sequence"),
             grouped(checkpoint.bytes()),
             counted(std::ssize(manifest.files), "file"));
  fmt::print("\nidentity\n");
  for (const auto &[key, value] : manifest.identity)
    fmt::print("  {:<24} {}\n", key, value);
  if (!manifest.run.values.empty())
    fmt::print("\nstate of the run\n");
  for (const auto &[name, values] : manifest.run.values)
    fmt::print("  {:<24} {}\n", name, counted(std::ssize(values), "number"));
  showTensors(manifest.tensors);
}

int runAction(const RunOptions &options) {
  std::vector<std::string> folders = checkpointsAt(options.checkpoint);
  if (options.action == "show") {
    show(Checkpoint(folders.front()), options.json);
    return kExitSuccess;
  }
  if (options.action == "verify")
    return printList(folders, options.json, wrongPieces) == 0 ? kExitSuccess
                                                              : kExitRunFailed;
  printList(folders, options.json,
            [](Checkpoint &) { return std::vector<std::string>(); });
  return kExitSuccess;
}

} // namespace

int runCheckpoint(const RunOptions &options) {
  int code = kExitSuccess;
  ExitCode failure = reportErrors([&] { code = runAction(options); });
  return failure ? failure : code;
}

} // namespace rota
