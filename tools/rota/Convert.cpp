// SPDX-License-Identifier: Apache-2.0
//
// The verb convert. Compiled with exceptions, since the reader of checkpoints
// reports by them; they do not leave this file.
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/options/AdapterOptions.h"

#include "runtime/checkpoint/AdapterContents.h"
#include "runtime/checkpoint/HubFolder.h"
#include "runtime/options/Bytes.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace rota {

static HubForm formOf(const RunOptions &options) {
  HubForm form;
  std::optional<int64_t> bytes = bytesOfText(options.shardSize);
  if (!bytes)
    throw InputError(fmt::format(
        "'shard-size': expected a number of bytes such as 5GB or 500MB, got "
        "'{}'",
        options.shardSize));
  form.shardBytes = *bytes;
  form.model = options.compiler.model;
  // Those of a hub go on from where its weights are.
  std::error_code unknown;
  if (form.model.empty() &&
      std::filesystem::is_directory(options.checkpoint, unknown) &&
      isHub(options.checkpoint))
    form.model = options.checkpoint;
  return form;
}

static std::optional<std::string> typeOf(const RunOptions &options) {
  if (!options.compiler.build.compute)
    return std::nullopt;
  bool isBf16 =
      *options.compiler.build.compute == mlir::rota::ComputeType::BF16;
  return isBf16 ? "BF16" : "F32";
}

/// Reports a folder that was written from `source`; `step` is null for weights
/// that are not of a run.
static void report(const RunOptions &options, const HubForm &form,
                   const HubSummary &summary, const std::string &source,
                   const nlohmann::ordered_json &step) {
  if (options.json)
    return fmt::print("{}\n",
                      jsonText(nlohmann::ordered_json{
                          {step.is_null() ? "hub" : "checkpoint", source},
                          {"folder", options.output},
                          {"step", step},
                          {"tensors", summary.tensors},
                          {"bytes", summary.bytes},
                          {"files", summary.files},
                          {"dtype", summary.type},
                          {"copied", summary.copied}}));
  fmt::print("{}: {} of {}, {} bytes of {} in {}\n", options.output,
             counted(summary.tensors, "tensor"),
             step.is_null() ? "'" + source + "'" : "step " + step.dump(),
             grouped(summary.bytes), summary.type,
             counted(summary.files, "file"));
  if (!summary.copied.empty())
    fmt::print("{}: {}, as in '{}'\n", options.output,
               fmt::join(summary.copied, ", "), form.model);
  else if (form.model.empty())
    fmt::print("note: without files of a tokenizer; '--model' names the hub "
               "folder that has them\n");
  if (!summary.hasConfig)
    fmt::print("note: the {} has no config.json\n",
               step.is_null() ? "hub folder" : "checkpoint's model");
}

/// Reads the folder of 'adapter' for weights that are not of a run.
static AdapterFacts givenAdapters(const RunOptions &options) {
  if (options.merge != !options.adapter.empty())
    throw InputError(fmt::format("'{}': expected '{}' beside it for weights "
                                 "that are not of a run",
                                 options.merge ? "merge" : "adapter",
                                 options.merge ? "adapter" : "merge"));
  RunOptions read = options;
  if (OptionMistake mistake = completeAdapter(read); !mistake.option.empty())
    throw InputError(fmt::format("'{}': {}", mistake.option, mistake.message));
  const mlir::rota::AdapterOptions &found = read.compiler.build.adapters;
  return {found.rank, found.alpha, found.targets, ""};
}

static void convertHub(const RunOptions &options) {
  HubTensors tensors(options.checkpoint);
  HubContents contents = contentsOf(tensors, typeOf(options));
  std::optional<HubTensors> adapter;
  if (options.merge || !options.adapter.empty()) {
    AdapterFacts facts = givenAdapters(options);
    adapter.emplace(
        (std::filesystem::path(options.adapter) / kAdapterFile).string());
    addAdapters(contents, *adapter);
    mergeAdapters(contents, facts.scale());
  }
  HubForm form = formOf(options);
  HubSummary summary = writeHubFolder(contents, options.output, form);
  report(options, form, summary, options.checkpoint, nullptr);
}

static void convertCheckpoint(const RunOptions &options) {
  Checkpoint checkpoint(checkpointsAt(options.checkpoint).front());
  std::optional<AdapterFacts> adapters = adaptersOf(checkpoint.manifest());
  if (!options.adapter.empty() || (options.merge && !adapters))
    throw InputError(fmt::format(
        "'{}': expected {}", options.merge && !adapters ? "merge" : "adapter",
        adapters ? "none beside a checkpoint, which has its own adapters"
                 : "a checkpoint of a run that trained adapters, got '" +
                       checkpoint.folder() + "'"));
  HubForm form = formOf(options);
  bool keeps = adapters && !options.merge;
  // Adapters stay in f32 unless the user says otherwise, as PEFT's do.
  std::optional<std::string> type = typeOf(options);
  if (keeps && !type)
    type = "F32";
  HubContents contents = contentsOf(checkpoint, type);
  if (keeps) {
    adapters->base = form.model;
    form.shardBytes = std::numeric_limits<int64_t>::max();
    keepAdapters(contents, *adapters);
  } else if (adapters) {
    mergeAdapters(contents, adapters->scale());
  }
  HubSummary summary = writeHubFolder(contents, options.output, form);
  report(options, form, summary, checkpoint.folder(),
         checkpoint.manifest().run.step);
}

int runConvert(const RunOptions &options) {
  const std::string &path = options.checkpoint;
  return reportErrors([&] {
    if (isHub(path))
      return convertHub(options);
    if (!isCheckpoint(path) && findCheckpoints(path).empty())
      throw InputError(fmt::format("expected a checkpoint, a folder of "
                                   "checkpoints or a hub folder, got '{}'",
                                   path));
    convertCheckpoint(options);
  });
}

} // namespace rota
