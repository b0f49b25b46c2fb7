// SPDX-License-Identifier: Apache-2.0
//
// The verb convert. Compiled with exceptions, since the reader of checkpoints
// reports by them; they do not leave this file.
#include "tools/rota/Verbs.h"

#include "runtime/checkpoint/HubFolder.h"
#include "runtime/options/Bytes.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
  if (options.compiler.build.compute)
    form.type = *options.compiler.build.compute == mlir::rota::ComputeType::BF16
                    ? "BF16"
                    : "F32";
  return form;
}

static void convert(const RunOptions &options) {
  Checkpoint checkpoint(checkpointsAt(options.checkpoint).front());
  HubSummary summary =
      writeHubFolder(checkpoint, options.output, formOf(options));
  if (options.json)
    return fmt::print("{}\n", jsonText(nlohmann::ordered_json{
                                  {"checkpoint", checkpoint.folder()},
                                  {"folder", options.output},
                                  {"step", checkpoint.manifest().run.step},
                                  {"tensors", summary.tensors},
                                  {"bytes", summary.bytes},
                                  {"files", summary.files},
                                  {"dtype", summary.type},
                                  {"copied", summary.copied}}));
  fmt::print("{}: {} tensors of step {}, {} bytes of {} in {} file{}\n",
             options.output, summary.tensors, checkpoint.manifest().run.step,
             grouped(summary.bytes), summary.type, summary.files,
             summary.files == 1 ? "" : "s");
  if (!summary.copied.empty())
    fmt::print("{}: {}, as in '{}'\n", options.output,
               fmt::join(summary.copied, ", "), options.compiler.model);
  else if (options.compiler.model.empty())
    fmt::print("note: without files of a tokenizer; '--model' names the hub "
               "folder that has them\n");
  if (!summary.hasConfig)
    fmt::print("note: the checkpoint's model has no config.json\n");
}

int runConvert(const RunOptions &options) {
  try {
    convert(options);
    return kExitSuccess;
  } catch (const InputError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kExitBadInput;
  } catch (const RunError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kExitRunFailed;
  }
}

} // namespace rota
