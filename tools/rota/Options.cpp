// SPDX-License-Identifier: Apache-2.0
//
// What options mean together: the mesh, what a verb needs, and numbers that
// must fit each other; and what the compiler and the trainer make of them.
#include "tools/rota/OptionTable.h"

#include "passes/pipeline/schedules/Schedules.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdlib>
#include <map>

using namespace rota;
using llvm::StringRef;

/// More ranks than this are a mistake, and products must not overflow.
static constexpr int64_t kMaxRanks = int64_t(1) << 24;

static std::string inQuotes(StringRef text) { return "'" + text.str() + "'"; }

namespace {
/// The mesh's sizes by axis name; -1 where one is to be found.
using MeshSizes = std::map<StringRef, int64_t>;
} // namespace

/// Reads "data=2,stage=-1"; returns what is wrong with it.
static std::string readMesh(StringRef mesh, MeshSizes &sizes) {
  static const std::vector<StringRef> axes = {
      "data", "stage", "fsdp", "expert", "context", "sequence", "tensor"};
  for (StringRef part : llvm::split(mesh, ',')) {
    auto [axis, text] = part.split('=');
    int64_t size = 0;
    if (!part.contains('=') || text.getAsInteger(10, size))
      return "expected AXIS=SIZE, got " + inQuotes(part);
    if (!llvm::is_contained(axes, axis))
      return "expected an axis of " + llvm::join(axes, ", ") + ", got " +
             inQuotes(axis);
    if (!sizes.try_emplace(axis, size).second)
      return "axis " + inQuotes(axis) + " stands twice";
    if (size != -1 && (size < 1 || size > 65536))
      return "expected a size from 1 to 65536, or -1, for axis " +
             inQuotes(axis) + ", got " + std::to_string(size);
  }
  return "";
}

/// Number of processes that mpirun or srun has started; 0 outside of them.
static int64_t processCount() {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char *text = std::getenv(name);
    int64_t count = 0;
    if (text && !StringRef(text).getAsInteger(10, count) && count > 0)
      return count;
  }
  return 0;
}

/// Gives the axis of size -1 what the others leave of the ranks; returns what
/// does not fit.
static std::string completeMesh(RunOptions &options, MeshSizes &sizes) {
  int64_t ranks = options.devices;
  if (ranks == 0 && options.ranks == RankKind::Mpi)
    ranks = processCount();
  int64_t known = 1;
  int64_t *open = nullptr;
  for (auto &[axis, size] : sizes) {
    if (size == -1 && open)
      return "expected at most one axis of size -1, got " +
             inQuotes(options.mesh);
    if (size == -1)
      open = &size;
    else
      known *= size;
    if (known > kMaxRanks)
      return "expected at most " + std::to_string(kMaxRanks) + " ranks, got " +
             inQuotes(options.mesh);
  }
  if (open && ranks == 0)
    return "expected 'devices', or processes under mpirun or srun, for an axis "
           "of size -1, got " +
           inQuotes(options.mesh);
  if (open && ranks % known != 0)
    return "expected the other axes to divide the number of ranks, got " +
           std::to_string(known) + " and " + std::to_string(ranks);
  if (open)
    *open = ranks / known;
  else if (ranks != 0 && ranks != known)
    return "expected as many ranks as there are devices, got " +
           std::to_string(known) + " and " + std::to_string(ranks);
  return "";
}

/// Checks the mesh and what depends on its sizes, and writes it with all sizes.
static OptionMistake checkMesh(RunOptions &options) {
  MeshSizes sizes;
  std::string message = readMesh(options.mesh, sizes);
  if (message.empty())
    message = completeMesh(options, sizes);
  if (!message.empty())
    return {"mesh", message};
  auto size = [&](StringRef axis) {
    auto it = sizes.find(axis);
    return it == sizes.end() ? 1 : it->second;
  };
  options.stages = size("stage");
  int64_t parts = size("data") * size("fsdp") * size("expert");
  int64_t sequences = options.batchSize / options.microbatches;
  if (sequences % parts != 0)
    return {"batch-size",
            "expected the sequences of a microbatch to be a multiple of data * "
            "fsdp * expert, got " +
                std::to_string(sequences) + " and " + std::to_string(parts)};
  for (const char *name : {"weight-gather", "window", "prefetch"})
    if (options.given.contains(name) && size("fsdp") == 1)
      return {name, "expected a mesh with an fsdp axis above 1, got " +
                        inQuotes(options.mesh)};
  if (options.shardOptimizer && size("data") == 1)
    return {"shard-optimizer",
            "expected a mesh with a data axis above 1, got " +
                inQuotes(options.mesh)};
  if (options.weightGather.empty() && size("fsdp") > 1)
    options.weightGather = options.repeats > 1 ? "per-repeat" : "once";
  if (options.weightGather == "per-repeat" && options.repeats == 1 &&
      options.layersPerChunk == 0)
    return {"weight-gather",
            "expected more than 1 repeat for 'per-repeat', got "
            "1; with one repeat 'once' gathers as often"};
  if (options.weightGather == "once" && options.given.contains("window"))
    return {"window", "expected no window with 'weight-gather' once, which "
                      "gathers every chunk, got " +
                          std::to_string(*options.window)};
  std::string complete; // the axes' names are parts of options.mesh
  for (auto [axis, ranks] : sizes)
    complete += (complete.empty() ? "" : ",") + axis.str() + "=" +
                std::to_string(ranks);
  options.mesh = std::move(complete);
  return {};
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

OptionMistake rota::checkOptions(Command verb, RunOptions &options) {
  if (std::string message = checkSchedule(options.schedule); !message.empty())
    return {"schedule", message};
  if (OptionMistake mistake = checkTrainOptions(options);
      !mistake.option.empty())
    return mistake;
  if (options.batchSize % options.microbatches != 0)
    return {"batch-size", "expected a multiple of 'microbatches', got " +
                              std::to_string(options.batchSize) + " and " +
                              std::to_string(options.microbatches)};
  if (OptionMistake mistake = checkMesh(options); !mistake.option.empty())
    return mistake;
  bool isModule = StringRef(options.model).ends_with(".mlir");
  if (verb != Command::Probe && !isModule)
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

std::vector<std::string> rota::trainerArguments(Command verb,
                                                RunOptions options) {
  std::vector<std::string> arguments;
  if (verb == Command::Probe)
    arguments.push_back("probe");
  for (const Option &option : trainOptions(options)) {
    if (!(option.commands & unsigned(verb)))
      continue;
    for (const std::string &text : valueTexts(option)) {
      if (option.isFlag() && text == "false")
        continue;
      arguments.push_back("--" + option.name);
      if (!option.isFlag())
        arguments.push_back(text);
    }
  }
  return arguments;
}
