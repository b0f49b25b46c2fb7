// SPDX-License-Identifier: Apache-2.0
//
// Checks of options against each other and of the mesh; the options of the
// model's builder and the arguments of the trainer.
#include "tools/rota/OptimizerOptions.h"
#include "tools/rota/OptionTable.h"

#include "ir/rota/Rota.h"
#include "ir/rota/sharding/MeshText.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/options/Bytes.h"
#include "runtime/options/Lists.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/Text.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstdio>
#include <cstdlib>

using namespace rota;
using llvm::StringRef;
using mlir::rota::MeshSizes;

RunOptions::RunOptions() { optimizer.own = ownOptions(); }

static std::string inQuotes(StringRef text) { return "'" + text.str() + "'"; }

/// Number of processes that a launcher has started; 0 outside of launchers.
static int64_t processCount() {
  for (const char *name :
       {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char *text = std::getenv(name);
    int64_t count = 0;
    if (text && !StringRef(text).getAsInteger(10, count) && count > 0)
      return count;
  }
  return 0;
}

/// Reads the mesh, for as many ranks as the options or the launcher say.
static std::optional<MeshSizes> readMesh(const RunOptions &options,
                                         std::string &error) {
  std::optional<MeshSizes> sizes =
      mlir::rota::parseMeshSizes(options.mesh, error);
  if (!sizes)
    return std::nullopt;
  int64_t ranks = options.devices;
  if (ranks == 0 && options.ranks != RankKind::Threads)
    ranks = processCount();
  if (ranks != 0)
    return mlir::rota::fitMeshSizes(*sizes, ranks, error) ? sizes
                                                          : std::nullopt;
  if (!llvm::is_contained(*sizes, mlir::rota::kInferredSize))
    return sizes;
  error = "expected 'devices', or processes of a launcher, for an axis "
          "of size -1, got " +
          inQuotes(options.mesh);
  return std::nullopt;
}

/// The rows of a schedule that is a file. Nothing for others, and for a file
/// with mistakes, which `make-timeline` reports.
static std::optional<pipe::Timeline> readTimeline(const RunOptions &options) {
  if (!StringRef(options.schedule).ends_with(".csv"))
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(options.schedule);
  std::string error;
  auto rows = file ? pipe::parseCsv((*file)->getBuffer(), error) : std::nullopt;
  if (!rows)
    return std::nullopt;
  return pipe::Timeline{pipe::inferShape(*rows), *rows};
}

/// The microbatches of a step when none are given: those of a file, or the
/// fewest that the schedule takes, or 1 where the schedule does not exist.
static int64_t defaultMicrobatches(const RunOptions &options) {
  if (std::optional<pipe::Timeline> timeline = readTimeline(options))
    return timeline->shape.microbatches;
  pipe::ScheduleRequest request;
  request.shape.stages = int(options.stages);
  request.shape.repeats = std::max(int(options.repeats), 1);
  request.shape.hasUnpipelined = options.pipelineLayers > 0;
  request.shape.placement = options.placement;
  request.delay = int(options.delay);
  request.activations =
      pipe::chunkActivations(options.activations, request.shape);
  return pipe::fewestMicrobatches(options.schedule, request).value_or(1);
}

/// A file with UNSHARD decides itself when weights are gathered.
static OptionMistake checkGathers(const RunOptions &options) {
  std::optional<pipe::Timeline> timeline = readTimeline(options);
  if (timeline && hasAny(*timeline, pipe::ActionKind::Unshard))
    for (const char *name : {"weight-gather", "prefetch"})
      if (options.given.contains(name))
        return {name, "expected a schedule without UNSHARD, got " +
                          inQuotes(options.schedule) + ", which has it"};
  return {};
}

/// Reads the numbers of `stageLayers`.
static OptionMistake readStageLayers(RunOptions &options) {
  for (const std::string &text : options.stageLayers) {
    int64_t count = 0;
    if (StringRef(text).getAsInteger(10, count) || count < 1)
      return {"layers-per-stage",
              "expected integers above 0, got " + inQuotes(text)};
    options.layersPerStage.push_back(count);
  }
  if (options.split == pipe::LayerSplit::Balanced)
    for (const char *name : {"layers-per-stage", "layers-per-chunk"})
      if (options.given.contains(name))
        return {name, "expected no numbers with 'split' balanced, which finds "
                      "them"};
  return {};
}

/// Sets the repeats and the placement that the schedule demands where none are
/// given.
static void takeDemandedShape(RunOptions &options) {
  pipe::Shape shape;
  shape.stages = int(options.stages);
  pipe::Shape demanded = pipe::demandedShape(options.schedule, shape);
  if (!options.given.contains("repeats") && options.layersPerChunk == 0 &&
      demanded.repeats != shape.repeats)
    options.repeats = demanded.repeats;
  if (!options.given.contains("placement") &&
      demanded.placement != shape.placement)
    options.placement = demanded.placement;
}

/// Checks the mesh and what depends on its sizes, and writes it with all sizes.
static OptionMistake checkMesh(RunOptions &options) {
  std::string message;
  std::optional<MeshSizes> sizes = readMesh(options, message);
  if (!sizes)
    return {"mesh", message};
  auto size = [&](StringRef axis) {
    return (*sizes)[static_cast<size_t>(*mlir::rota::symbolizeMeshAxis(axis))];
  };
  options.stages = size("stage");
  options.experts.ranks = size("expert");
  if (options.experts.capacity > 0 && options.experts.buffer > 0)
    return {"expert-buffer",
            "expected none beside 'expert-capacity', which drops what the "
            "buffer would end the run for, got " +
                numberText(options.experts.buffer) + " and a capacity of " +
                numberText(options.experts.capacity)};
  takeDemandedShape(options);
  if (!options.given.contains("microbatches"))
    options.microbatches = defaultMicrobatches(options);
  if (options.batchSize % options.accumulate != 0)
    return {"batch-size", "expected a multiple of 'accumulate', got " +
                              std::to_string(options.batchSize) + " and " +
                              std::to_string(options.accumulate)};
  int64_t batch = options.batchSize / options.accumulate;
  if (batch % options.microbatches != 0)
    return {"batch-size",
            options.accumulate == 1
                ? "expected a multiple of 'microbatches', got " +
                      std::to_string(batch) + " and " +
                      std::to_string(options.microbatches)
                : "expected a multiple of 'accumulate' * 'microbatches', got " +
                      std::to_string(options.batchSize) + " and " +
                      std::to_string(options.accumulate) + " * " +
                      std::to_string(options.microbatches)};
  int64_t parts = size("data") * size("fsdp") * size("expert");
  int64_t sequences = batch / options.microbatches;
  if (sequences % parts != 0)
    return {"batch-size",
            "expected the sequences of a microbatch to be a multiple of data * "
            "fsdp * expert, got " +
                std::to_string(sequences) + " and " + std::to_string(parts)};
  // Other axes divide storage by the user's rules alone.
  bool dividesStorage = size("fsdp") > 1 ||
                        llvm::any_of(options.shardingRules, [](StringRef rule) {
                          return rule.ltrim().starts_with("storage/");
                        });
  for (const char *name : {"weight-gather", "window", "prefetch"})
    if (options.given.contains(name) && !dividesStorage)
      return {name, "expected a mesh with an fsdp axis above 1, got " +
                        inQuotes(options.mesh)};
  if (options.shardOptimizer && size("data") == 1)
    return {"shard-optimizer",
            "expected a mesh with a data axis above 1, got " +
                inQuotes(options.mesh)};
  if (options.weightGather == pipe::GatherMode::PerRepeat &&
      options.repeats <= 1 && options.layersPerChunk == 0)
    return {"weight-gather",
            "expected more than 1 repeat for 'per-repeat', got "
            "1; with one repeat 'once' gathers as often"};
  if (options.weightGather == pipe::GatherMode::Once &&
      options.given.contains("window"))
    return {"window", "expected no window with 'weight-gather' once, which "
                      "gathers every chunk, got " +
                          std::to_string(*options.window)};
  std::string complete = mlir::rota::meshText(*sizes);
  options.mesh = complete.empty() ? "stage=1" : complete;
  return {};
}

static std::string checkSchedule(const std::string &schedule) {
  if (StringRef(schedule).ends_with(".csv") || pipe::findSchedule(schedule))
    return "";
  return "expected one of " + pipe::scheduleNames() + ", or a .csv file, got " +
         inQuotes(schedule);
}

OptionMistake rota::checkScheduleOptions(const RunOptions &options) {
  for (const std::string &name : options.compare)
    if (std::string message = checkSchedule(name); !message.empty())
      return {"compare", message};
  bool compares = !options.compare.empty();
  if (!compares && !options.given.contains("schedule"))
    return {"schedule", "the option is missing"};
  if (compares && options.given.contains("schedule"))
    return {"compare", "expected no schedule beside the list, got " +
                           inQuotes(options.schedule)};
  if (options.sweep && !compares)
    return {"sweep", "expected 'compare' beside it, got none"};
  if (options.sweep && options.given.contains("microbatches"))
    return {"sweep", "expected no 'microbatches' beside it, got " +
                         std::to_string(options.microbatches)};
  if (compares && options.format != TimelineFormat::Grid &&
      options.format != TimelineFormat::JSON)
    return {"format", "expected grid or json with 'compare', got '" +
                          std::string(nameOf(options.format)) + "'"};
  if (compares && !options.given.contains("ranks"))
    return {"ranks", "the option is missing beside 'compare'"};
  return {};
}

static OptionMistake readMemory(RunOptions &options) {
  if (options.remat == kAutoRemat && options.memoryText.empty())
    return {"remat", "expected 'memory' beside auto, got none"};
  if (options.memoryText.empty())
    return {};
  std::optional<int64_t> bytes = bytesOfText(options.memoryText);
  if (!bytes)
    return {"memory",
            "expected a number of bytes such as 80GiB or 500MB, got " +
                inQuotes(options.memoryText)};
  options.memory = *bytes;
  return {};
}

OptionMistake rota::checkOptions(Command verb, RunOptions &options) {
  if (std::string message = checkSchedule(options.schedule); !message.empty())
    return {"schedule", message};
  if (OptionMistake mistake = checkTrainOptions(options);
      !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake = checkOptimizer(options); !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake = checkMesh(options); !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake = checkGathers(options); !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake = readStageLayers(options); !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake = readMemory(options); !mistake.option.empty())
    return mistake;
  // Numbers of stages say which rank has which layers.
  options.anyPlacement =
      !options.given.contains("placement") && options.stageLayers.empty();
  if (options.target.unchecked && !traitsOf(options.target.device).isEmulated)
    return {"unchecked", "expected device 'simt', got '" +
                             std::string(nameOf(options.target.device)) + "'"};
  using mlir::rota::ContextExchange;
  if (options.contextExchange != ContextExchange::Gather &&
      options.contextExchange != ContextExchange::Auto &&
      traitsOf(options.target.device).isGpu)
    return {"context-exchange",
            "expected 'gather' or 'auto' on a GPU, which has no code for a "
            "ring yet, got '" +
                std::string(nameOf(options.contextExchange)) + "'"};
  if (options.lossBlocks > 1 && llvm::is_contained(options.write, "logits"))
    return {"loss-blocks", "expected 1 where 'write' has logits, got " +
                               std::to_string(options.lossBlocks)};
  bool isModule = StringRef(options.model).ends_with(".mlir");
  // The shape of a probe is that of its tokens, of an evaluation that of the
  // checkpoint's run.
  if (verb != Command::Probe && verb != Command::Eval && !isModule)
    for (const char *name : {"batch-size", "sequence-length"})
      if (!options.given.contains(name))
        return {name, "the option is missing; a configuration does not say it"};
  if (!options.given.contains("microbatches") && options.microbatches > 1)
    std::fprintf(stderr,
                 "note: 'microbatches': %lld, the fewest that schedule '%s' "
                 "takes on %lld stages\n",
                 static_cast<long long>(options.microbatches),
                 options.schedule.c_str(),
                 static_cast<long long>(options.stages));
  return {};
}

mlir::rota::BuildOptions rota::buildOptions(const RunOptions &options) {
  mlir::rota::BuildOptions build;
  build.sequences =
      options.batchSize / options.accumulate / options.microbatches;
  build.sequenceLength = options.sequenceLength;
  build.allowUnknownKeys = options.allowUnknownKeys;
  build.compute = options.dtype;
  build.zLoss = options.zLoss;
  build.lossBlocks = options.lossBlocks;
  build.experts = options.experts;
  if (options.given.contains("load-balance-loss"))
    build.routers.balance = options.loadBalanceLoss;
  build.routers.balanceOver = options.loadBalanceOver;
  build.routers.zLoss = options.routerZLoss;
  if (options.given.contains("mtp-loss"))
    build.predictionLoss = options.predictionLoss;
  build.routers.biasRate = options.routerBiasRate;
  return build;
}

std::vector<std::string> rota::trainerArguments(Command verb,
                                                RunOptions options) {
  std::vector<std::string> arguments;
  if (verb == Command::Probe)
    arguments.push_back("probe");
  if (verb == Command::Eval)
    arguments.push_back("eval");
  for (const Option &option : trainOptions(options)) {
    if (!(option.commands & unsigned(verb)))
      continue;
    for (const std::string &text : valueTexts(option)) {
      if (option.isFlag() && text == "false")
        continue;
      arguments.push_back("--" + option.name);
      if (!option.isFlag())
        arguments.push_back(option.isList() ? listText(text) : text);
    }
  }
  return arguments;
}
