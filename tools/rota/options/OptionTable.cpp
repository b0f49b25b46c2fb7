// SPDX-License-Identifier: Apache-2.0
//
// The table of options. Rows of pass options take their defaults from the
// passes (RunOptions' constructor) and leave their bounds to them.
#include "tools/rota/options/OptionTable.h"

#include "tools/rota/options/AdapterOptions.h"
#include "tools/rota/options/OptimizerRows.h"

#include "models/Config.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "runtime/documents/ChatTemplate.h"
#include "runtime/program/IdentityKeys.h"

#include <climits>

using namespace rota;

namespace {

constexpr unsigned train = unsigned(Command::Train);
constexpr unsigned compile = unsigned(Command::Compile);
constexpr unsigned plan = unsigned(Command::Plan);
constexpr unsigned probe = unsigned(Command::Probe);
constexpr unsigned eval = unsigned(Command::Eval);
constexpr unsigned generate = unsigned(Command::Generate);
constexpr unsigned schedule = unsigned(Command::Schedule);
constexpr unsigned convert = unsigned(Command::Convert);
constexpr unsigned machine = unsigned(Command::Machine);
constexpr unsigned models = train | compile | plan | probe | eval | generate;
constexpr unsigned timelines = models | schedule;

constexpr double maxSize = mlir::rota::Config::maxSize;
constexpr double maxInt = INT_MAX; // for numbers that become an int
constexpr double anySign = -maxInt;
constexpr double maxLossBlocks = 4096; // each is a call in an action's list

using Rows = std::vector<Option>;

Rows modelRows(RunOptions &o) {
  const char *group = "Model";
  mlir::rota::BuildOptions &build = o.compiler.build;
  mlir::rota::RouterLosses &routers = build.routers;
  return {
      {.name = "model",
       .group = group,
       .value = "PATH",
       .help = "Hub folder, config.json, or a module in a .mlir file; of "
               "convert, the hub folder whose other files are carried on",
       .commands = models | convert,
       .variable = &o.compiler.model,
       .requiredBy = models},
      {"allow-unknown-keys", group, "",
       "Ignore keys of a configuration that its family does not know, with "
       "a warning",
       models, &build.allowUnknownKeys},
      {"dtype", group, "TYPE",
       "Element type of the computation or of converted weights (the "
       "model's own)",
       models | convert, Choice(build.compute)},
      {"z-loss", group, "X",
       "Adds X times the mean of logsumexp(logits)^2 to the loss that "
       "trains",
       train | compile | plan | probe, &build.zLoss, 0, 1e9},
      {"loss-blocks", group, "K",
       "Parts of the sequence for which head and loss run one after the "
       "other, so that logits need 1/K of the bytes",
       models, &build.lossBlocks, 1, maxLossBlocks},
      {"mtp-loss", group, "X",
       "Weight of the loss of multi-token prediction of a configuration "
       "with num_nextn_predict_layers; 0: without its layer (0.3 where "
       "there is one)",
       train | compile | plan | probe, &build.predictionLoss, 0, 1e9},
      {"load-balance-loss", group, "X",
       "Adds X times the load balance of experts to the loss that trains "
       "(without it: router_aux_loss_coef of a configuration whose "
       "output_router_logits is true)",
       train | compile | plan | probe, &routers.balance, 0, 1e9},
      {identity::kLoadBalanceOver, group, "TOKENS",
       "Tokens over which that load is balanced: each microbatch's, or all "
       "of a step, whose forwards then run once more before it",
       train | compile | plan | probe, Choice(routers.balanceOver)},
      {"router-z-loss", group, "X",
       "Adds X times the mean of logsumexp(logits)^2 of routers",
       train | compile | plan | probe, &routers.zLoss, 0, 1e9},
      {identity::kRouterBiasRate, group, "X",
       "Adds X to the bias of choices of experts with less than the mean "
       "load of a step, and takes X from those with more (0: biases stay)",
       train | compile | plan | probe, &routers.biasRate, 0, 1e6},
      {identity::kExpertCapacity, group, "X",
       "Rows that an expert takes of a sequence, over its even share; "
       "what exceeds them is dropped (0: nothing is)",
       models, &build.experts.capacity, 0, 1e6},
      {"expert-pieces", group, "N",
       "Pieces of a sequence whose rows of experts are exchanged along "
       "'expert' on their own, beside products of another",
       models, &build.experts.pieces, 1, 64},
      {"expert-buffer", group, "X",
       "Rows of a sequence for which a rank along 'expert' has room, over "
       "its even share; more end the run (0: as many as there can be)",
       models, &build.experts.buffer, 0, 1e6},
      {"batch-size", group, "N", "Sequences in a step, all ranks together",
       train | compile | plan | eval, &o.batchSize, 1, maxSize},
      {"accumulate", group, "N",
       "Parts that a step's batch is cut into, each of which goes through "
       "the whole timeline; their gradients are added, then one update",
       train | compile | plan | probe, &o.compiler.accumulationSteps, 1,
       kMostAccumulationSteps},
      {"sequence-length", group, "N",
       "Tokens in a sequence; of generate, in the window (those of prompt and "
       "continuation, at most what the checkpoint's run or the configuration "
       "says)",
       train | compile | plan | eval | generate, &build.sequenceLength, 1,
       maxSize},
      {"samples", group, "",
       "The trainer can continue a prompt: one that `rota train` compiles for "
       "a prompt can",
       compile | plan, &o.compiler.samples}};
}

Rows meshRows(RunOptions &o) {
  const char *group = "Mesh";
  mlir::rota::ShardPipelineOptions &shard = o.compiler.shard;
  mlir::pipe::CompleteTimelineOptions &complete = o.compiler.complete;
  return {
      {"mesh", group, "AXIS=N,...",
       "Sizes of the axes data, stage, fsdp, expert, context, "
       "sequence, tensor; one may be -1, what is left of 'devices'",
       models, &shard.meshText},
      {"devices", group, "N", "Ranks in all (the processes of a launcher)",
       models, &o.devices, 1, maxSize},
      {"machine", group, "NAME|FILE",
       "The machine that times are for, and choices by time; its memory bounds "
       "a rank where 'memory' is not given. `rota machine list` has the names "
       "(generic). Of `rota machine measure --device cuda`, the one that has "
       "what this host cannot measure: levels of the network, peaks",
       models | machine, &o.machine},
      {"nodes", group, "N",
       "Nodes of the machine, which say 'devices': all of its innermost level "
       "of the network",
       models, &o.nodes, 1, maxSize},
      {"sharding", group, "MODE",
       "A reshard, or an error, where shardings do not agree", models,
       Choice(shard.mode)},
      {"context-exchange", group, "HOW",
       "Exchange of keys and values along the context axis: gather them; send "
       "them around a ring, or a balanced-ring with equal work for all ranks; "
       "auto: the exchange that takes the least time",
       models, Choice(shard.exchange)},
      {"tensor-exchange", group, "HOW",
       "Reduction of the partial sums of products along the sequence and "
       "tensor "
       "axes: gather all of them first; let them go around a ring in pieces, "
       "each beside the product of the next; auto: what takes the least time",
       models, Choice(shard.tensorExchange)},
      {"sharding-rules", group, "NAME=AXIS+...,...",
       "Mesh axes of a logical axis (heads=tensor), of storage "
       "(storage/embed=fsdp) or of activations "
       "(activation/length=context); before the default rules",
       models, JoinedList{&shard.rules}},
      {"shard-optimizer", group, "",
       "Divide master weights and optimizer's states over all axes along which "
       "a parameter is replicated (ZeRO-1)",
       models, &shard.shardOptimizer},
      {"gradient-dtype", group, "TYPE",
       "Type in which gradients that products make are accumulated and "
       "reduced; bf16 takes half the bytes",
       models, Choice(shard.gradientDtype)},
      {"weight-gather", group, "MODE",
       "Time of gathers of weights whose storage is divided (UNSHARD, RESHARD "
       "and REDUCE_GRAD actions). auto, the default of a run: per-repeat or "
       "once, and with a bound on memory any, whichever makes the step "
       "shortest",
       timelines, Choice(complete.mode)},
      {"window", group, "N",
       "Chunks whose weights a rank holds gathered, at most (" +
           std::to_string(pipe::kDefaultWindow) + ")",
       timelines, &complete.window, 0, maxInt},
      {"prefetch", group, "N",
       "Actions between the start of a gather and its first use, at most (as "
       "early as the window allows)",
       timelines, &complete.prefetch, 0, maxInt}};
}

Rows pipelineRows(RunOptions &o) {
  const char *group = "Pipeline";
  mlir::pipe::ScheduleLayersOptions &layers = o.compiler.schedule;
  return {{"schedule", group, "NAME",
           pipe::scheduleNames() + ", or a .csv file", timelines,
           &layers.schedule},
          {"stages", group, "N", "Stages of the pipeline, a rank each",
           schedule, &layers.stages, anySign, maxInt},
          {"microbatches", group, "N",
           "Parts that a step's batch is cut into (the default of a run: the "
           "fewest that the schedule takes)",
           timelines, &layers.microbatches, 1, maxInt},
          {"repeats", group, "N",
           "Chunks of layers on each rank. Schedule auto takes 1 or 2; costs "
           "of actions are then those of all layers of a rank. A single stage "
           "is divided so that its transfers over other axes are hidden",
           timelines, &layers.repeats, 1, maxInt},
          {"delay", group, "N", "Iterations from one stage to the next: 1 or 2",
           timelines, &layers.delay, 1, pipe::kOutgoingBuffers},
          {"split-backward", group, "",
           "Weight gradients apart from input gradients (I and W actions); "
           "schedule auto chooses where this is not given",
           timelines, &layers.splitBackward},
          {"pairs", group, "",
           "A forward and a backward at once, where the schedule is published "
           "with them, or (auto) where the step is shorter: " +
               pipe::namesWithPairs(),
           timelines, &layers.pairs},
          {"activations", group, "N",
           "Activations that a rank holds at most, one being those of all its "
           "layers for one microbatch, as in the table of 'compare': 1f1b "
           "holds one for each rank; 0: any number. For schedule auto, which "
           "searches, it is the bound",
           timelines, &layers.activations, 0, maxInt},
          {"layers-per-chunk", group, "N",
           "Layers in each chunk; 0: what stages and repeats leave", models,
           &layers.layersPerChunk, 0, maxInt},
          {"layers-per-stage", group, "N,...",
           "Layers of each stage, which its chunks share evenly, or of each "
           "chunk; 0: the embedding or the loss alone",
           models, NumberList(layers.layersPerStage), 0, maxSize},
          {"split", group, "NAME",
           "Layers of the stages, and with repeats of the chunks, where no "
           "numbers are given: equal numbers, or those with the shortest step "
           "by the cost of each layer, the embedding and the loss",
           models, Choice(layers.split)},
          {"pipeline-layers", group, "N",
           "Layers in the pipeline; all stages run the others, each for "
           "its share of the microbatches; 0: all",
           models, &layers.pipelineLayers, 0, maxInt},
          {"placement", group, "NAME",
           "Order of chunks over ranks: in a loop, or in a V", timelines,
           Choice(layers.placement)},
          {"remat", group, "POLICY",
           "Values that backward recomputes: a policy (none, minimal, full, "
           "...) or name=remat|device|offload,...; of single stages and "
           "chunks: POLICY;STAGE:POLICY;chunkN:POLICY;..., or auto: those of "
           "each stage, and of its chunks, with which the step is shortest in "
           "'memory'",
           models, &o.compiler.differentiate.remat},
          {"memory", group, "SIZE",
           "Bytes of its device that a rank may take, as 80GiB or 500MB; a "
           "plan that needs more is refused (any number)",
           train | compile | plan | probe, &o.compiler.memoryText}};
}

Rows executionRows(RunOptions &o) {
  const char *execution = "Execution", *output = "Output";
  lowering::TargetOptions &target = o.compiler.target;
  return {
      {"device", execution, "NAME",
       "The device that computes, or that is measured", models | machine,
       Choice(target.device)},
      {"target-cpu", execution, "NAME",
       "The processor to compile for, in LLVM's words",
       train | compile | probe | eval | generate, &target.cpu},
      {"target-gpu", execution, "NAME,...",
       "The GPUs that a trainer has code for (sm_80,sm_90a,sm_100), or the one "
       "of level ptx (sm_90)",
       train | compile | probe | eval | generate, &target.gpus},
      {"ptxas", execution, "PATH",
       "NVIDIA's assembler (the first found), or none: PTX alone, which a "
       "GPU's "
       "driver assembles when the trainer starts",
       train | compile | probe | eval | generate, &o.compiler.link.ptxas},
      {"unchecked", execution, "",
       "With --device simt, kernels without checks of accesses and races: "
       "faster",
       train | compile | probe | eval | generate, &target.unchecked},
      {"linker", execution, "PATH", "The linker (the first found)",
       train | compile | probe | eval | generate, &o.compiler.link.linker},
      {"shard-size", output, "SIZE",
       "Bytes of tensors in a file, at most: 5GB, 500MB", convert,
       &o.shardSize},
      {"merge", output, "",
       "Add low-rank adapters, those of the checkpoint or of 'adapter', to the "
       "weights",
       convert, &o.merge},
      {"emit", output, "LEVEL",
       "The level to write (llvm is LLVM IR, ptx the kernels of a GPU)",
       compile, Choice(o.emit)},
      {"explain", output, "",
       "Print each transfer between ranks: tensor, reason, and exposed time; "
       "in a plan, what each axis of the mesh divides too, and the launches on "
       "a GPU",
       compile | plan, &o.explain},
      {"report", output, "PATH",
       "Write the plan as an HTML page too: timeline, memory over time, "
       "transfers",
       plan, &o.report},
      {"search", output, "",
       "Search for the plan with the shortest step on 'devices' that fits "
       "'memory', and print the ten best. What another flag says stays as it "
       "is: a mesh of as many ranks as devices is the whole mesh, of a smaller "
       "one the axes that it names. -o writes the best as a RUN.json",
       plan, &o.search},
      {"state", output, "",
       "Print the tensors that a checkpoint holds, and nothing else", plan,
       &o.state},
      {"remarks", output, "CATEGORY",
       "The compiler's remarks, on standard error", compile | plan,
       Choice(o.remarks)},
      {"export", output, "ENGINE",
       "Print the plan as flags or configuration of another engine, with what "
       "has no equivalent there, instead; into the folder that 'output' names",
       plan, Choice(o.exported)},
      {.name = "import",
       .group = "Model",
       .value = "ENGINE RUN",
       .help = "A run of another engine, whose options and model are those of "
               "this one where they are not given: megatron and its flags in "
               "one argument, or torchtitan and its file (.toml)",
       .commands = train | compile | plan,
       .variable = &o.imported,
       .words = 2}};
}

/// Options of `rota plan` that ask about a whole run.
Rows campaignRows(RunOptions &o) {
  const char *group = "Whole run";
  CampaignRequest &run = o.campaign;
  return {{"tokens", group, "X",
           "Tokens that are trained on: prints days and device hours", plan,
           &run.tokens, 0, 1e18},
          {"price", group, "X",
           "Price of a device for an hour: prints the cost", plan, &run.price,
           0, 1e9},
          {"mtbf", group, "HOURS",
           "Mean time between failures of a device: prints the best interval "
           "between checkpoints, and the share of time that trains",
           plan, &run.hoursBetweenFailures, 0, 1e12},
          {"storage-bandwidth", group, "X",
           "Bytes a second that checkpoints are written with, by all ranks",
           plan, &run.storageBytesPerSecond, 0, 1e18}};
}

Rows reportRows(RunOptions &o) {
  constexpr unsigned report = unsigned(Command::Report);
  return {{.name = "run",
           .group = "Report",
           .value = "DIR",
           .help = "The folder that --metrics wrote",
           .commands = report,
           .variable = &o.runFolder,
           .requiredBy = report}};
}

Rows machineRows(RunOptions &o) {
  return {{"seconds", "Machine", "X",
           "Seconds that measure takes, about; rates are surer with more",
           machine, &o.measureSeconds, 1, 3600}};
}

Rows promptRows(RunOptions &o) {
  return {{"prompt", "Samples", "TEXT",
           "Text that the model continues, by the tokenizer", generate,
           &o.prompt},
          {"sample-prompt", "Samples", "TEXT",
           "Text that the model continues after every 'sample-interval' steps",
           train, &o.samplePrompt},
          {"ignore-eos", "Samples", "",
           "End no continuation at the end tokens of the model's folder, but "
           "at 'stop-tokens' that are given",
           train | generate, &o.ignoreEos}};
}

Rows tokenizerRows(RunOptions &o) {
  const char *group = "Tokenizer";
  constexpr unsigned both = Command::Tokenize | Command::Detokenize;
  constexpr unsigned texts = train | eval | Command::Tokenize;
  constexpr unsigned masks = train | compile | plan | probe | eval;
  constexpr unsigned prompts = train | generate;
  return {{.name = "tokenizer",
           .group = group,
           .value = "PATH",
           .help = "tokenizer.json, a sentencepiece tokenizer.model, a folder "
                   "with one of them, or 'bytes', whose tokens are the bytes "
                   "of the text (of texts and prompts: the one in the model's "
                   "folder; of texts where the vocabulary is that of bytes: "
                   "none)",
           .commands = both | prompts | eval,
           .variable = &o.tokenizer,
           .requiredBy = both},
          {"end-token", group, "TEXT",
           "A token to put after each document, or none (eos_token of "
           "tokenizer_config.json, or eos_token_id of generation_config.json "
           "or config.json)",
           texts | masks, &o.endToken},
          {identity::kDocumentMask, group, "",
           "No token sees another document than its own, and positions begin "
           "anew: documents end with 'end-token', of tokens without a "
           "tokenizer a number. Plans count the work of all pairs of tokens "
           "(of eval: as the checkpoint's run)",
           masks, &o.documentMask},
          {"special-tokens", group, "NAME",
           "Tokens around each document: those of the tokenizer's template, or "
           "none; as text: all, or none",
           both | prompts | eval, Choice(o.specialTokens)},
          {"field", group, "NAME",
           "The field of .jsonl that has the text (text; or messages, or "
           "prompt and completion, where a record has these)",
           texts, &o.field},
          {"skip-bad-lines", group, "",
           "Leave out lines of .jsonl that are no record, and say how many",
           texts, &o.skipBadLines},
          {"chat-template", group, "NAME",
           "How conversations of .jsonl are written: " + chatTemplateNames() +
               " (the one that the tokenizer's folder has)",
           texts, &o.chatTemplate},
          {"cache-dir", group, "DIR",
           "The folder where tokens of texts are kept for the next run "
           "(.rota-tokens beside the texts)",
           train | eval, &o.cacheDir}};
}

/// Options of `rota schedule` alone.
Rows scheduleRows(RunOptions &o) {
  const char *actions = "Actions", *costs = "Costs";
  auto cost = [&](const char *name, double &value, const char *help) {
    return Option{name, costs, "X", help, schedule, &value, 0, 1e9};
  };
  return {
      {"unpipelined", actions, "",
       "Add a chunk of layers outside of the pipeline: microbatch m on rank m "
       "mod ranks",
       schedule, &o.unpipelined},
      {"communication", actions, "", "Add SEND and RECV actions", schedule,
       &o.communication},
      {"offload", actions, "", "Add OFFLOAD and FETCH actions", schedule,
       &o.offload},
      cost("cost-forward", o.costs.forward, "Time of F"),
      cost("cost-backward", o.costs.backward, "Time of B"),
      cost("cost-backward-input", o.costs.backwardInput, "Time of I"),
      cost("cost-backward-weight", o.costs.backwardWeight, "Time of W"),
      cost("cost-send", o.costs.send, "Latency of a message"),
      cost("cost-gather", o.costs.unshard, "Time of UNSHARD"),
      cost("cost-reduce", o.costs.reduceGrad, "Time of REDUCE_GRAD"),
      cost("cost-offload", o.costs.offload, "Time of OFFLOAD"),
      cost("cost-fetch", o.costs.fetch, "Time of FETCH"),
      {"pair-share", costs, "X",
       "Time of a pair: that of its longer half and X times that of its "
       "shorter "
       "one; 1: they share the arithmetic of a device",
       schedule, &o.costs.pairShare, 0, 1},
      {"cores", "Costs", "N",
       "Cores that all ranks share, one for each action that runs; 0: every "
       "rank has its own",
       plan | schedule, &o.costs.cores, 0, 1024},
      {"measured", "Costs", "PATH",
       "Trace of a run (--trace) with the same chunks: prints the step that "
       "its "
       "costs give the timeline",
       plan, &o.measured},
      {"compare", "Output", "NAME,...",
       "Print a table of these schedules instead; costs are then those of all "
       "layers of a rank, and B takes what I and W do",
       schedule, &o.compare},
      {"sweep", "Output", "",
       "With --compare, a table for each of 1, 2, 4 and 8 * stages "
       "microbatches",
       schedule, &o.sweep},
      {"format", "Output", "NAME", "PyTorch reads csv, Perfetto reads trace",
       schedule, Choice(o.format)}};
}

} // namespace

std::vector<Option> rota::optionTable(RunOptions &options) {
  Rows table;
  for (Rows rows :
       {modelRows(options), adapterRows(options, models), meshRows(options),
        pipelineRows(options), scheduleRows(options), reportRows(options),
        campaignRows(options), machineRows(options), promptRows(options),
        tokenizerRows(options), optimizerRows(options, models),
        trainOptions(options), executionRows(options)})
    table.insert(table.end(), rows.begin(), rows.end());
  return table;
}
