// SPDX-License-Identifier: Apache-2.0
//
// The table of options.
#include "tools/rota/OptionTable.h"

#include "models/Config.h"
#include "passes/pipeline/schedules/Schedules.h"

using namespace rota;

namespace {

constexpr unsigned train = unsigned(Verb::Train);
constexpr unsigned compile = unsigned(Verb::Compile);
constexpr unsigned plan = unsigned(Verb::Plan);
constexpr unsigned probe = unsigned(Verb::Probe);
constexpr unsigned all = train | compile | plan | probe;
constexpr unsigned runs = train | probe;

constexpr double maxSize = mlir::rota::Config::maxSize;
constexpr double maxCount = 9007199254740992.0; // 2^53, exact in a double
constexpr double maxParts = 65536; // of microbatches, stages, repeats

using O = RunOptions;

void addModel(std::vector<OptionSpec> &table) {
  const char *group = "Model";
  table.push_back({"model", group, "PATH",
                   "Hub folder, config.json, or a module in a .mlir file", all,
                   0, &O::model});
  table.push_back({"dtype",
                   group,
                   "TYPE",
                   "What the model computes in: f32 or bf16 (its own dtype)",
                   all,
                   0,
                   &O::dtype,
                   0,
                   0,
                   {"f32", "bf16"}});
  table.push_back({"weights", group, "PATH",
                   "Initial weights in safetensors (those beside the model)",
                   runs, runs, &O::weights});
  table.push_back({"batch-size", group, "N",
                   "Sequences in a step, all ranks together",
                   train | compile | plan, 0, &O::batchSize, 1, maxSize});
  table.push_back({"sequence-length", group, "N", "Tokens in a sequence",
                   train | compile | plan, 0, &O::sequenceLength, 1, maxSize});
}

void addMesh(std::vector<OptionSpec> &table) {
  const char *group = "Mesh";
  table.push_back({"mesh", group, "AXIS=N,...",
                   "Sizes of the axes data, stage, fsdp, expert, context, "
                   "sequence, tensor; one may be -1, what is left of 'devices'",
                   all, 0, &O::mesh});
  table.push_back({"devices", group, "N",
                   "Ranks in all (the processes under mpirun or srun)", all, 0,
                   &O::devices, 1, maxSize});
  table.push_back({"sharding",
                   group,
                   "MODE",
                   "Where shardings do not agree: auto inserts a reshard, "
                   "explicit is an error",
                   all,
                   0,
                   &O::sharding,
                   0,
                   0,
                   {"auto", "explicit"}});
  table.push_back({"sharding-rules", group, "NAME=AXIS+...,...",
                   "Mesh axes of a logical axis (heads=tensor), of storage "
                   "(storage/embed=fsdp) or of activations "
                   "(activation/length=context); before the default rules",
                   all, 0, &O::shardingRules});
  table.push_back({"shard-optimizer", group, "",
                   "Divide the optimizer's state over the data axis (ZeRO-1)",
                   all, 0, &O::shardOptimizer});
  table.push_back({"weight-gather",
                   group,
                   "MODE",
                   "When weights that fsdp divides are gathered: per-repeat "
                   "(with several repeats the default), once, per-iteration",
                   all,
                   0,
                   &O::weightGather,
                   0,
                   0,
                   {"per-iteration", "once", "per-repeat"}});
  table.push_back({"window", group, "N",
                   "Chunks whose weights a rank holds gathered, at most", all,
                   0, &O::window, 1, maxParts});
  table.push_back({"prefetch", group, "N",
                   "Actions between the start of a gather and its first use, "
                   "at most; 0: as early as the window allows",
                   all, 0, &O::prefetch, 0, maxParts});
}

void addPipeline(std::vector<OptionSpec> &table) {
  const char *group = "Pipeline";
  table.push_back({"schedule", group, "NAME",
                   pipe::scheduleNames() + ", or a .csv file", all, 0,
                   &O::schedule});
  table.push_back({"microbatches", group, "N",
                   "Parts that a step's batch is cut into", all, 0,
                   &O::microbatches, 1, maxParts});
  table.push_back({"repeats", group, "N", "Chunks of layers in each rank", all,
                   0, &O::repeats, 1, maxParts});
  table.push_back({"delay", group, "N",
                   "Iterations from one stage to the next: 1 or 2", all, 0,
                   &O::delay, 1, 2});
  table.push_back({"split-backward", group, "",
                   "Weight gradients apart from input gradients", all, 0,
                   &O::splitBackward});
  table.push_back({"layers-per-chunk", group, "N",
                   "Layers in each chunk; 0: what stages and repeats leave",
                   all, 0, &O::layersPerChunk, 0, maxParts});
  table.push_back(
      {"pipeline-layers", group, "N",
       "Layers in the pipeline; all stages run the others, each for "
       "its share of the microbatches; 0: all",
       all, 0, &O::pipelineLayers, 0, maxParts});
  table.push_back({"placement",
                   group,
                   "NAME",
                   "Which rank owns a chunk: loop or v",
                   all,
                   0,
                   &O::placement,
                   0,
                   0,
                   {"loop", "v"}});
  table.push_back({"remat", group, "POLICY",
                   "What backward recomputes: a policy (none, minimal, full, "
                   "...) or name=remat|device|offload,...; of single stages: "
                   "POLICY;STAGE:POLICY;...",
                   all, 0, &O::remat});
}

void addOptimizer(std::vector<OptionSpec> &table) {
  const char *group = "Optimizer (AdamW)";
  table.push_back({"learning-rate", group, "X", "Highest learning rate", runs,
                   runs, &O::learningRate});
  table.push_back({"min-learning-rate", group, "X",
                   "Learning rate at the end of the cosine", train, train,
                   &O::minLearningRate});
  table.push_back({"warmup-steps", group, "N",
                   "Steps in which the learning rate rises", runs, runs,
                   &O::warmupSteps, 0, maxCount});
  constexpr double below1 = 0.999999999;
  table.push_back({"beta1", group, "X", "Decay of the first moment", runs, runs,
                   &O::beta1, 0, below1});
  table.push_back({"beta2", group, "X", "Decay of the second moment", runs,
                   runs, &O::beta2, 0, below1});
  table.push_back(
      {"epsilon", group, "X", "Added to the root", runs, runs, &O::epsilon});
  table.push_back({"weight-decay", group, "X",
                   "Decay of tensors of two or more dimensions", runs, runs,
                   &O::weightDecay});
  table.push_back({"gradient-clip", group, "X",
                   "Largest global norm of the gradient; 0: no clipping", runs,
                   runs, &O::gradientClip});
}

void addTraining(std::vector<OptionSpec> &table) {
  const char *group = "Training";
  table.push_back({"steps", group, "N", "Optimizer steps", runs, runs,
                   &O::steps, 1, maxCount});
  table.push_back({"data", group, "PATH,...",
                   "Token files, or text that is read as bytes", train, train,
                   &O::data});
  table.push_back({"token-type",
                   group,
                   "TYPE",
                   "A token in the files: bytes, uint16 or uint32",
                   train,
                   train,
                   &O::tokenType,
                   0,
                   0,
                   {"bytes", "uint16", "uint32"}});
  table.push_back({"seed", group, "N", "Seed of all random numbers", runs, runs,
                   &O::seed, 0, maxCount});
  table.push_back({"validation-fraction", group, "X",
                   "Part of the data, from its end, kept for validation", train,
                   train, &O::validationFraction, 0, 0.9});
  table.push_back({"validation-interval", group, "N",
                   "Steps between validations; 0: after the last step only",
                   train, train, &O::validationInterval, 0, maxCount});
  table.push_back({"validation-steps", group, "N", "Batches in a validation",
                   train, train, &O::validationSteps, 1, maxCount});
  table.push_back({"time-limit", group, "SECONDS",
                   "Stop training after this time; 0: no limit", train, train,
                   &O::timeLimit});
  table.push_back({"log-interval", group, "N", "Steps between lines", train,
                   train, &O::logInterval, 1, maxCount});
  table.push_back({"save", group, "PATH",
                   "Write the final weights (.safetensors)", train, train,
                   &O::save});
  group = "Probe";
  table.push_back({"tokens", group, "PATH",
                   "A .safetensors file with tokens [batch, sequence + 1]",
                   probe, probe, &O::tokens});
  table.push_back({"write",
                   group,
                   "NAME,...",
                   "loss, logits, gradients, loss-curve",
                   probe,
                   probe,
                   &O::write,
                   0,
                   0,
                   {"loss", "logits", "gradients", "loss-curve"}});
}

void addExecution(std::vector<OptionSpec> &table) {
  const char *group = "Execution";
  table.push_back(
      {"device", group, "NAME", "cpu", all, 0, &O::device, 0, 0, {"cpu"}});
  table.push_back({"ranks",
                   group,
                   "KIND",
                   "What a rank is: threads of one process, or mpi",
                   all,
                   runs,
                   &O::ranks,
                   0,
                   0,
                   {"threads", "mpi"}});
  table.push_back({"threads", group, "N",
                   "Cores that a process computes with; 0: its share", runs,
                   runs, &O::threads, 0, 1024});
  table.push_back({"target-cpu", group, "NAME",
                   "The processor to compile for, in LLVM's words",
                   train | compile | probe, 0, &O::targetCpu});
  table.push_back({"linker", group, "PATH", "The linker (the first found)",
                   train | compile | probe, 0, &O::linker});
  group = "Output";
  table.push_back(
      {"emit",
       group,
       "LEVEL",
       "rota, differentiated, sharded, pipe, kernels, llvm, ptx or executable",
       compile,
       0,
       &O::emit,
       0,
       0,
       {"rota", "differentiated", "sharded", "pipe", "kernels", "llvm", "ptx",
        "executable"}});
  table.push_back({"output",
                   group,
                   "PATH",
                   "The file to write",
                   compile | probe,
                   probe,
                   &O::output,
                   0,
                   0,
                   {},
                   'o'});
  table.push_back({"json", group, "", "The same facts as JSON",
                   train | plan | probe, runs, &O::json});
  table.push_back({"explain", group, "",
                   "Each transfer between ranks: what, why, and how much of "
                   "its time nothing hides",
                   compile | plan, 0, &O::explain});
  table.push_back(
      {"remarks",
       group,
       "CATEGORY",
       "The compiler's remarks, on standard error: differentiate, "
       "shard, executable, communication or all",
       compile | plan,
       0,
       &O::remarks,
       0,
       0,
       {"differentiate", "shard", "executable", "communication", "all"}});
  table.push_back({"profile", group, "",
                   "Calls and time of each task, kernel and product", runs,
                   runs, &O::profile});
  table.push_back({"trace", group, "PATH",
                   "Write the actions as a Chrome trace", runs, runs,
                   &O::trace});
}

} // namespace

const std::vector<OptionSpec> &rota::optionTable() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> options;
    addModel(options);
    addMesh(options);
    addPipeline(options);
    addOptimizer(options);
    addTraining(options);
    addExecution(options);
    return options;
  }();
  return table;
}

const OptionSpec *rota::findOption(llvm::StringRef name) {
  for (const OptionSpec &option : optionTable())
    if (option.name == name)
      return &option;
  return nullptr;
}

std::string rota::suggestion(llvm::StringRef name, unsigned verbs,
                             llvm::StringRef prefix) {
  unsigned best = std::max<unsigned>(3, name.size() / 3);
  std::string nearest;
  for (const OptionSpec &option : optionTable()) {
    unsigned distance = name.edit_distance(option.name, true, best);
    if ((option.verbs & verbs) && distance < best) {
      best = distance;
      nearest = option.name;
    }
  }
  return nearest.empty() ? ""
                         : "; did you mean '" + prefix.str() + nearest + "'?";
}
