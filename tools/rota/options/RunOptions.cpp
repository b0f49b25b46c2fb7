// SPDX-License-Identifier: Apache-2.0
//
// Checks of options against each other and of the mesh; the options of the
// model's builder and the arguments of the trainer.
#include "tools/rota/options/AdapterOptions.h"
#include "tools/rota/options/MachineOptions.h"
#include "tools/rota/options/OptimizerRows.h"
#include "tools/rota/options/OptionTable.h"

#include "ir/rota/Rota.h"
#include "ir/rota/sharding/MeshText.h"
#include "passes/differentiate/Remat.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/options/Bytes.h"
#include "runtime/options/Lists.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/IdentityKeys.h"
#include "runtime/text/Text.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstdio>
#include <cstdlib>

using namespace rota;
using llvm::StringRef;
using mlir::rota::MeshSizes;

RunOptions::RunOptions() {
  optimizer.own = ownOptions();
  compiler.shard.meshText = "stage=1";
  compiler.shard.optimizer = "adamw";
}

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
      mlir::rota::parseMeshSizes(options.compiler.shard.meshText, error);
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
          inQuotes(options.compiler.shard.meshText);
  return std::nullopt;
}

/// A schedule that is a file has microbatches and chunks, and maybe gathers.
static bool isFile(const RunOptions &options) {
  return StringRef(options.compiler.schedule.schedule).ends_with(".csv");
}

/// The rows of a schedule that is a file. Nothing for others, and for a file
/// with mistakes, which `make-timeline` reports.
static std::optional<pipe::Timeline> readTimeline(const RunOptions &options) {
  if (!isFile(options))
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(options.compiler.schedule.schedule);
  std::string error;
  auto rows = file ? pipe::parseCsv((*file)->getBuffer(), error) : std::nullopt;
  if (!rows)
    return std::nullopt;
  return pipe::Timeline{pipe::inferShape(*rows), *rows};
}

/// The microbatches of a step when none are given: those of a file, or the
/// fewest that the schedule takes, or 1 where the schedule does not exist.
static int64_t defaultMicrobatches(const RunOptions &options,
                                   const std::optional<pipe::Timeline> &file) {
  const mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  if (file)
    return file->shape.microbatches;
  pipe::ScheduleRequest request;
  request.shape.stages = int(layers.stages);
  request.shape.repeats = std::max(int(layers.repeats), 1);
  request.shape.hasUnpipelined = layers.pipelineLayers > 0;
  request.shape.placement = layers.placement;
  request.delay = int(layers.delay);
  request.activations =
      pipe::chunkActivations(layers.activations, request.shape);
  return pipe::fewestMicrobatches(layers.schedule, request).value_or(1);
}

/// A file with UNSHARD decides itself when weights are gathered.
static OptionMistake checkGathers(const RunOptions &options) {
  std::optional<pipe::Timeline> timeline = readTimeline(options);
  if (timeline && hasAny(*timeline, pipe::ActionKind::Unshard))
    for (const char *name : {"weight-gather", "prefetch"})
      if (options.given.contains(name))
        return {name, "expected a schedule without UNSHARD, got " +
                          inQuotes(options.compiler.schedule.schedule) +
                          ", which has it"};
  return {};
}

/// `split` balanced finds numbers of layers itself.
static OptionMistake checkStageLayers(const RunOptions &options) {
  if (options.compiler.schedule.split == pipe::LayerSplit::Balanced)
    for (const char *name : {"layers-per-stage", "layers-per-chunk"})
      if (options.given.contains(name))
        return {name, "expected no numbers with 'split' balanced, which finds "
                      "them"};
  return {};
}

/// Sets the repeats and the placement that the schedule demands, or that a file
/// has, where none are given.
static void takeDemandedShape(RunOptions &options,
                              const std::optional<pipe::Timeline> &file) {
  mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  pipe::Shape shape;
  shape.stages = int(layers.stages);
  pipe::Shape demanded =
      file ? file->shape : pipe::demandedShape(layers.schedule, shape);
  if (!options.given.contains("repeats") && layers.layersPerChunk == 0 &&
      demanded.repeats != shape.repeats)
    layers.repeats = demanded.repeats;
  if (!options.given.contains("placement") &&
      demanded.placement != shape.placement)
    layers.placement = demanded.placement;
}

/// A file says itself how many microbatches and chunks there are.
static OptionMistake checkFile(const RunOptions &options,
                               const std::optional<pipe::Timeline> &file) {
  const mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  if (!file)
    return {};
  for (auto [name, own, said] :
       {std::tuple("microbatches", file->shape.microbatches,
                   layers.microbatches),
        std::tuple("repeats", file->shape.repeats, layers.repeats)})
    if (options.given.contains(name) && own != said)
      return {name, "expected " + std::to_string(own) + ", those of " +
                        inQuotes(layers.schedule) + ", got " +
                        std::to_string(said)};
  return {};
}

std::string rota::microbatchesText(const RunOptions &options) {
  const mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  std::string text = std::to_string(layers.microbatches);
  if (options.given.contains("microbatches"))
    return text;
  if (isFile(options))
    return text + ", those of " + inQuotes(layers.schedule);
  return text + ", the fewest that schedule " + inQuotes(layers.schedule) +
         " takes on " + counted(layers.stages, "stage");
}

/// Checks that the batch divides into microbatches, and these among `parts`
/// ranks. A number of microbatches that nobody gave is said to be a default.
static OptionMistake checkBatch(const RunOptions &options, int64_t parts) {
  int64_t rounds = options.compiler.accumulationSteps;
  int64_t microbatches = options.compiler.schedule.microbatches;
  int64_t batch = options.batchSize / rounds;
  std::string reason = options.given.contains("microbatches")
                           ? ""
                           : "; 'microbatches' is " + microbatchesText(options);
  auto refuse = [&](const std::string &rule, const std::string &got) {
    return OptionMistake{"batch-size", "expected " + rule + ", got " + got};
  };
  if (options.batchSize % rounds != 0)
    return refuse("a multiple of 'accumulate'",
                  std::to_string(options.batchSize) + " and " +
                      std::to_string(rounds));
  if (batch % microbatches != 0)
    return rounds == 1 ? refuse("a multiple of 'microbatches'",
                                std::to_string(batch) + " and " +
                                    std::to_string(microbatches) + reason)
                       : refuse("a multiple of 'accumulate' * 'microbatches'",
                                std::to_string(options.batchSize) + " and " +
                                    std::to_string(rounds) + " * " +
                                    std::to_string(microbatches) + reason);
  if (int64_t sequences = batch / microbatches; sequences % parts != 0)
    return refuse("the sequences of a microbatch to be a multiple of data * "
                  "fsdp * expert",
                  std::to_string(sequences) + " and " + std::to_string(parts) +
                      (microbatches > 1 ? reason : ""));
  return {};
}

/// Checks when weights are gathered, which needs divided storage.
static OptionMistake checkWindows(const RunOptions &options, bool hasFsdp) {
  const CompilerOptions &compiler = options.compiler;
  // Other axes divide storage by the user's rules alone.
  bool dividesStorage =
      hasFsdp || llvm::any_of(llvm::split(StringRef(compiler.shard.rules), ','),
                              [](StringRef rule) {
                                return rule.ltrim().starts_with("storage/");
                              });
  for (const char *name : {"weight-gather", "window", "prefetch"})
    if (options.given.contains(name) && !dividesStorage)
      return {name, "expected a mesh with an fsdp axis above 1, got " +
                        inQuotes(compiler.shard.meshText)};
  if (compiler.complete.mode == pipe::GatherMode::PerRepeat &&
      compiler.schedule.stages > 1 && compiler.schedule.repeats <= 1 &&
      compiler.schedule.layersPerChunk == 0)
    return {"weight-gather",
            "expected more than 1 repeat for 'per-repeat', got "
            "1; with one repeat 'once' gathers as often"};
  if (compiler.complete.mode == pipe::GatherMode::Once &&
      options.given.contains("window"))
    return {"window", "expected no window with 'weight-gather' once, which "
                      "gathers every chunk, got " +
                          std::to_string(compiler.complete.window)};
  return {};
}

/// Checks the mesh and what depends on its sizes, and writes it with all sizes.
static OptionMistake checkMesh(RunOptions &options) {
  CompilerOptions &compiler = options.compiler;
  std::string message;
  std::optional<MeshSizes> sizes = readMesh(options, message);
  if (!sizes)
    return {"mesh", message};
  auto size = [&](StringRef axis) {
    return (*sizes)[static_cast<size_t>(*mlir::rota::symbolizeMeshAxis(axis))];
  };
  compiler.schedule.stages = size("stage");
  mlir::rota::ExpertRoom &experts = compiler.build.experts;
  experts.ranks = size("expert");
  experts.parts = size("context");
  if (experts.capacity > 0 && experts.buffer > 0)
    return {"expert-buffer",
            "expected none beside 'expert-capacity', which drops what the "
            "buffer would end the run for, got " +
                numberText(experts.buffer) + " and a capacity of " +
                numberText(experts.capacity)};
  if (experts.pieces > 1 && experts.parts > 1)
    return {"expert-pieces",
            "expected 1 on a mesh with 'context', whose ranks have parts of "
            "sequences already, got " +
                std::to_string(experts.pieces)};
  if (experts.pieces > 1 && experts.capacity > 0)
    return {"expert-pieces",
            "expected 1 beside 'expert-capacity', which counts the rows of "
            "whole sequences, got " +
                std::to_string(experts.pieces)};
  std::optional<pipe::Timeline> file = readTimeline(options);
  takeDemandedShape(options, file);
  if (!options.given.contains("microbatches"))
    compiler.schedule.microbatches = defaultMicrobatches(options, file);
  if (OptionMistake mistake = checkFile(options, file); !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake =
          checkBatch(options, size("data") * size("fsdp") * size("expert"));
      !mistake.option.empty())
    return mistake;
  if (OptionMistake mistake = checkWindows(options, size("fsdp") > 1);
      !mistake.option.empty())
    return mistake;
  if (compiler.shard.shardOptimizer &&
      size("data") * size("expert") * size("context") * size("sequence") *
              size("tensor") ==
          1)
    return {"shard-optimizer",
            "expected a mesh with an axis above 1 besides stage and fsdp, "
            "got " +
                inQuotes(compiler.shard.meshText)};
  std::string complete = mlir::rota::meshText(*sizes);
  compiler.shard.meshText = complete.empty() ? "stage=1" : complete;
  return {};
}

static std::string checkSchedule(const std::string &schedule) {
  if (StringRef(schedule).ends_with(".csv") || pipe::findSchedule(schedule))
    return "";
  return "expected one of " + pipe::scheduleNames() + ", or a .csv file, got " +
         inQuotes(schedule);
}

OptionMistake rota::checkScheduleOptions(const RunOptions &options) {
  const mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  for (const std::string &name : options.compare)
    if (std::string message = checkSchedule(name); !message.empty())
      return {"compare", message};
  bool compares = !options.compare.empty();
  if (!compares && !options.given.contains("schedule"))
    return {"schedule", "the option is missing"};
  if (compares && options.given.contains("schedule"))
    return {"compare", "expected no schedule beside the list, got " +
                           inQuotes(layers.schedule)};
  if (options.sweep && !compares)
    return {"sweep", "expected 'compare' beside it, got none"};
  if (options.sweep && options.given.contains("microbatches"))
    return {"sweep", "expected no 'microbatches' beside it, got " +
                         std::to_string(layers.microbatches)};
  if (compares && options.format != TimelineFormat::Grid &&
      options.format != TimelineFormat::JSON)
    return {"format", "expected grid or json with 'compare', got '" +
                          std::string(nameOf(options.format)) + "'"};
  if (compares && !options.given.contains("stages"))
    return {"stages", "the option is missing beside 'compare'"};
  return {};
}

static OptionMistake readMemory(RunOptions &options) {
  CompilerOptions &compiler = options.compiler;
  if (compiler.memoryText.empty())
    boundByMachine(options);
  if (compiler.memory > 0)
    return {};
  if (compiler.memoryText.empty())
    return compiler.differentiate.remat == kAutoRemat
               ? OptionMistake{"remat",
                               "expected 'memory' beside auto, got none"}
               : OptionMistake();
  std::optional<int64_t> bytes = bytesOfText(compiler.memoryText);
  if (!bytes)
    return {"memory",
            "expected a number of bytes such as 80GiB or 500MB, got " +
                inQuotes(compiler.memoryText)};
  compiler.memory = *bytes;
  return {};
}

/// Checks what the device has no code for.
static OptionMistake checkDevice(const CompilerOptions &compiler) {
  const lowering::TargetOptions &target = compiler.target;
  if (target.unchecked && !traitsOf(target.device).isEmulated)
    return {"unchecked", "expected device 'simt', got '" +
                             std::string(nameOf(target.device)) + "'"};
  return {};
}

/// Checks what a search cannot choose of. The mesh is left to the search.
static OptionMistake checkSearchOptions(RunOptions &options) {
  CompilerOptions &compiler = options.compiler;
  std::string error;
  if (!mlir::rota::parseMeshSizes(compiler.shard.meshText, error))
    return {"mesh", error};
  if (options.devices == 0 && options.ranks != RankKind::Threads)
    options.devices = processCount();
  if (options.devices == 0)
    return {"devices", "expected a number beside 'search', got none"};
  if (StringRef(compiler.model).ends_with(".mlir"))
    return {"search", "expected a configuration, of which batches of any size "
                      "are built, got the module " +
                          inQuotes(compiler.model)};
  if (isFile(options))
    return {"schedule", "expected a name beside 'search', got " +
                            inQuotes(compiler.schedule.schedule)};
  if (mlir::rota::isRematList(compiler.differentiate.remat))
    return {"remat",
            "expected one policy for all stages beside 'search', got " +
                inQuotes(compiler.differentiate.remat)};
  for (const char *name : {"layers-per-stage", "layers-per-chunk",
                           "pipeline-layers", "pairs", "delay"})
    if (options.given.contains(name))
      return {name, "expected none beside 'search', which divides the layers "
                    "of any number of stages"};
  for (const char *name : {"export", "state", "measured", "mtbf"})
    if (options.given.contains(name))
      return {name, "expected none beside 'search'; `rota plan` of the "
                    "RUN.json that its 'output' writes takes it"};
  return {};
}

using Check = std::function<OptionMistake()>;

static OptionMistake firstMistake(const std::vector<Check> &checks) {
  for (const Check &check : checks)
    if (OptionMistake mistake = check(); !mistake.option.empty())
      return mistake;
  return {};
}

/// Whether the program can continue a prompt.
static bool samples(const RunOptions &options) {
  return options.compiler.samples || options.samples.isOn() ||
         options.given.contains("prompt") ||
         options.given.contains("sample-prompt");
}

OptionMistake rota::checkOptions(RunOptions &options) {
  mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  if (std::string message = checkSchedule(layers.schedule); !message.empty())
    return {"schedule", message};
  std::vector<Check> checks = {[&] { return readMachine(options); },
                               [&] { return checkCampaign(options.campaign); },
                               [&] { return checkTrainOptions(options); },
                               [&] { return checkOptimizer(options); },
                               [&] { return completeAdapter(options); }};
  if (options.search)
    checks.push_back([&] { return checkSearchOptions(options); });
  else
    llvm::append_values(
        checks, [&] { return checkMesh(options); },
        [&] { return checkGathers(options); },
        [&] { return checkStageLayers(options); });
  checks.push_back([&] { return readMemory(options); });
  checks.push_back([&] { return checkDevice(options.compiler); });
  if (OptionMistake mistake = firstMistake(checks);
      !mistake.option.empty() || options.search)
    return mistake;
  // Numbers of stages say which rank has which layers.
  layers.anyPlacement =
      !options.given.contains("placement") && layers.layersPerStage.empty();
  layers.anyRepeats =
      !options.given.contains("repeats") && layers.layersPerStage.empty() &&
      layers.layersPerChunk == 0 &&
      !StringRef(options.compiler.differentiate.remat).contains("chunk");
  layers.anySplit = !options.given.contains("split-backward");
  if (int64_t blocks = options.compiler.build.lossBlocks;
      blocks > 1 && llvm::is_contained(options.write, "logits"))
    return {"loss-blocks", "expected 1 where 'write' has logits, got " +
                               std::to_string(blocks)};
  if (samples(options) && options.compiler.build.experts.buffer > 0)
    return {"expert-buffer",
            "a text that stands in many sequences needs more rows: expected 0 "
            "beside a prompt, got " +
                numberText(options.compiler.build.experts.buffer)};
  if (!options.given.contains("microbatches") && layers.microbatches > 1 &&
      !isFile(options))
    std::fprintf(stderr, "note: 'microbatches': %s\n",
                 microbatchesText(options).c_str());
  return {};
}

/// Whether `axis` of a checked mesh has several ranks.
static bool divides(const RunOptions &options, mlir::rota::MeshAxis axis) {
  std::string error;
  std::optional<MeshSizes> sizes =
      mlir::rota::parseMeshSizes(options.compiler.shard.meshText, error);
  return sizes && (*sizes)[static_cast<size_t>(axis)] > 1;
}

bool rota::opensRepeats(const RunOptions &options) {
  const mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  using mlir::rota::MeshAxis;
  auto travels = [&](MeshAxis axis) { return divides(options, axis); };
  return layers.anyRepeats && layers.stages == 1 && layers.repeats <= 1 &&
         layers.pipelineLayers == 0 && !layers.pairs && !isFile(options) &&
         llvm::any_of(std::initializer_list<MeshAxis>{MeshAxis::Data,
                                                      MeshAxis::Fsdp,
                                                      MeshAxis::Expert,
                                                      MeshAxis::Context},
                      travels);
}

bool rota::opensGathers(const RunOptions &options) {
  return options.compiler.complete.mode == pipe::GatherMode::Auto &&
         !isFile(options) && divides(options, mlir::rota::MeshAxis::Fsdp);
}

/// Program::modelOptions.
static std::vector<ModelOption>
modelOptions(const mlir::rota::BuildOptions &build) {
  std::vector<ModelOption> chosen;
  for (auto [name, value] :
       {std::pair(identity::kExpertCapacity, build.experts.capacity),
        std::pair(identity::kRouterBiasRate, build.routers.biasRate)})
    if (value > 0)
      chosen.push_back({name, numberText(value)});
  if (build.routers.balanceOver == mlir::rota::LoadBalanceOver::Step)
    chosen.push_back({identity::kLoadBalanceOver, "step"});
  if (build.documentEnd)
    chosen.push_back(
        {identity::kDocumentMask, std::to_string(*build.documentEnd)});
  if (const mlir::rota::AdapterOptions &adapters = build.adapters;
      adapters.rank > 0) {
    chosen.push_back({kLoraRank, std::to_string(adapters.rank)});
    chosen.push_back({kLoraAlpha, numberText(adapters.alpha)});
    chosen.push_back({kLoraTargets, llvm::join(adapters.targets, ",")});
  }
  return chosen;
}

CompilerOptions rota::compilerOptions(const RunOptions &options) {
  CompilerOptions compiler = options.compiler;
  compiler.build.sequences = options.batchSize / compiler.accumulationSteps /
                             compiler.schedule.microbatches;
  compiler.samples = samples(options);
  if (compiler.samples || llvm::is_contained(options.write, "logits"))
    compiler.differentiate.valueName = "logits";
  if (options.given.contains("remat"))
    compiler.complete.policy = compiler.differentiate.remat;
  compiler.optimizer = optimizerText(options);
  compiler.modelOptions = modelOptions(compiler.build);
  return compiler;
}

std::vector<std::string> rota::trainerArguments(Command verb,
                                                RunOptions options) {
  std::vector<std::string> arguments;
  if (verb == Command::Probe)
    arguments.push_back("probe");
  if (verb == Command::Eval)
    arguments.push_back("eval");
  if (verb == Command::Generate)
    arguments.push_back("generate");
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
