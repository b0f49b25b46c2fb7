// SPDX-License-Identifier: Apache-2.0
//
// A run as flags of Megatron-LM.
#include "tools/planner/engines/Megatron.h"

namespace rota::engines::megatron {

namespace {

/// Writes the flags of one run.
class FlagsWriter {
public:
  FlagsWriter(const EngineRun &run, const EngineModel &model)
      : run(run), model(model) {}

  /// Empty, or what Megatron cannot run at all.
  std::string mistake() const;
  EngineExport write();

private:
  void setRanks();
  void setShardedWeights();
  void setPipeline();
  void setBatch();
  void setRecomputation();
  void setModel();
  void setExperts();
  void setTypes();
  void setOptimizer();
  void missing(std::string subject, std::string reason) {
    result.missing.push_back({std::move(subject), std::move(reason)});
  }
  int64_t tensorRanks() const { return run.tensor * run.sequence; }
  int64_t allMicrobatches() const { return run.accumulate * run.microbatches; }

  const EngineRun &run;
  const EngineModel &model;
  Flags flags;
  EngineExport result;
};

std::string FlagsWriter::mistake() const {
  auto text = [](int64_t number) { return std::to_string(number); };
  if (run.tensor > 1 && run.sequence > 1)
    return "expected one of the axes tensor and sequence, since tensor "
           "parallelism is with sequence parallelism or without, got " +
           text(run.tensor) + " and " + text(run.sequence);
  if (run.expert > 1 && run.tensor > 1)
    return "expected sequence=" + text(run.tensor) +
           " in the place of tensor=" + text(run.tensor) +
           " beside an expert axis, as experts there need sequence parallelism";
  if (run.unpipelined > 0)
    return "expected all layers in the pipeline, got " + text(run.unpipelined) +
           " outside of it";
  if (run.context > 1 && run.length % (2 * run.context) != 0)
    return "expected a sequence length that is a multiple of 2 * context, "
           "got " +
           text(run.length) + " and " + text(run.context);
  if (run.stage > 1 && run.repeats > 1 && allMicrobatches() % run.stage != 0)
    return "expected microbatches that are a multiple of the stages, as the "
           "interleaved schedule needs, got " +
           text(allMicrobatches()) + " and " + text(run.stage);
  return "";
}

void FlagsWriter::setRanks() {
  flags.tensor = tensorRanks();
  if (run.sequence > 1)
    flags.sequenceParallel = true;
  flags.pipeline = run.stage;
  flags.context = run.context;
  if (run.context > 1) {
    flags.contextExchange =
        run.contextExchange == "gather" ? "allgather" : "p2p";
    if (run.contextExchange == "ring")
      missing("context-exchange ring", "its ring (p2p) gives all ranks equal "
                                       "work, as balanced-ring does");
  }
  if (run.expert > 1) {
    flags.expert = run.expert;
    flags.expertTensor = tensorRanks();
  }
  int64_t replicas = run.batchRanks() * run.context;
  if (replicas > 1)
    flags.overlapsReduce = true;
  if (run.shardsOptimizer) {
    flags.distributedOptimizer = true;
    if (tensorRanks() > 1)
      missing("shard-optimizer",
              "it divides the states of norms over data and context alone");
  }
  if (run.tensorExchange != "gather") {
    if (run.sequence > 1)
      flags.tensorOverlap = true;
    else if (run.tensor > 1)
      missing("tensor-exchange " + run.tensorExchange,
              "products overlap with their exchange (--tp-comm-overlap) with "
              "sequence parallelism alone");
  }
  setShardedWeights();
  if (flags.distributedOptimizer && replicas > 1)
    flags.overlapsGather = true;
}

void FlagsWriter::setShardedWeights() {
  if (run.fsdp == 1)
    return;
  flags.fsdp = true;
  flags.distributedOptimizer = true;
  flags.fsdpSharding = "optim_grads_params";
  flags.checkpointFormat = "fsdp_dtensor";
  if (run.data > 1)
    flags.instances = run.data;
  if (run.weightGather != "per-layer")
    missing("weight-gather " + run.weightGather,
            "Megatron-FSDP gathers the weights of a layer for each use");
  if (run.context > 1)
    missing("fsdp=" + std::to_string(run.fsdp),
            "Megatron-FSDP divides weights over the context ranks, too");
  if (run.expert > 1)
    missing("expert=" + std::to_string(run.expert),
            "Megatron-FSDP divides weights beside the experts over these "
            "ranks, too");
}

void FlagsWriter::setPipeline() {
  if (run.stage == 1)
    return;
  if (run.layers.size() == size_t(run.chunks()) &&
      std::ranges::any_of(run.layers, [&](int64_t count) {
        return count != run.layers.front();
      }))
    flags.layout = layoutText(run.layers);
  else if (run.repeats > 1)
    flags.virtualStages = run.repeats;
  const char *own = run.repeats > 1 ? "interleaved-1f1b" : "1f1b";
  if (run.schedule != own)
    missing("schedule " + run.schedule,
            std::string("it runs 1f1b, and interleaved-1f1b where a rank has "
                        "several chunks: here ") +
                own);
  if (run.accumulate > 1)
    missing("accumulate " + std::to_string(run.accumulate),
            "all microbatches of a step go through one pipeline there");
}

void FlagsWriter::setBatch() {
  flags.microBatch = run.microbatchSize();
  flags.globalBatch = run.batch;
  flags.sequenceLength = run.length;
  flags.steps = run.steps;
}

void FlagsWriter::setRecomputation() {
  if (run.remat == "none")
    return;
  if (run.remat == "full") {
    flags.recomputed = "full";
    flags.recomputeMethod = "uniform";
    flags.recomputedLayers = 1;
    return;
  }
  missing("remat " + run.remat,
          "it recomputes whole layers, or submodules that are other ones than "
          "Rota's names; no flag is written, so that all is kept");
}

void FlagsWriter::setModel() {
  bool isGpt2 = model.family == "gpt2";
  flags.layers = model.layers;
  flags.embed = model.embed;
  flags.feedForward = model.feedForward;
  flags.heads = model.heads;
  if (!isGpt2) {
    flags.headSize = model.headSize;
    flags.isGated = true;
    flags.hasNoBias = true;
    flags.rotaryBase = int64_t(model.rotaryBase);
    if (model.rotaryBase != double(*flags.rotaryBase))
      missing("rope_theta " + numberText(model.rotaryBase),
              "the base is an integer there");
  }
  if (model.keyHeads != model.heads) {
    flags.groupsQueries = true;
    flags.queryGroups = model.keyHeads;
  }
  if (model.window)
    flags.window = std::to_string(*model.window - 1) + ",0";
  flags.positions = std::max(model.positions, run.length);
  flags.positionKind = isGpt2 ? "learned_absolute" : "rope";
  flags.norm = isGpt2 ? "LayerNorm" : "RMSNorm";
  flags.normEpsilon = model.normEpsilon;
  flags.initializerRange = model.initializerRange;
  if (model.rotaryFactor) {
    flags.scalesRotary = true;
    flags.rotaryFactor = model.rotaryFactor;
  }
  if (model.family == "qwen2")
    flags.biasesQueries = true;
  if (model.family.starts_with("qwen3"))
    flags.normsQueries = true;
  if (!model.tied)
    flags.isUntied = true;
  flags.vocabulary = model.vocabulary;
  flags.vocabularyDivisor = 1; // as Rota, which pads over the ranks alone
  flags.attentionDropout = flags.hiddenDropout = 0.0;
}

void FlagsWriter::setExperts() {
  if (model.experts == 0)
    return;
  flags.experts = model.experts;
  flags.choices = model.choices;
  flags.expertFeedForward = model.expertFeedForward;
  if (!model.normalizesChoices)
    flags.choosesAfterSoftmax = true;
  double balance = run.number("load-balance-loss", model.balanceLoss);
  flags.balance = balance > 0 ? "aux_loss" : "none";
  if (balance > 0)
    flags.balanceLoss = numberText(balance);
  if (run.routerZLoss > 0)
    flags.routerZLoss = run.routerZLoss;
  flags.dispatcher = "alltoall";
  flags.groupsProducts = true;
  if (run.expertCapacity > 0) {
    flags.expertCapacity = run.expertCapacity;
    missing("expert-capacity " + numberText(run.expertCapacity),
            "it counts the even share of a rank's tokens of a microbatch, Rota "
            "that of a sequence");
  }
  if (run.expertBuffer > 0)
    missing("expert-buffer " + numberText(run.expertBuffer),
            "buffers have the size of the rows that come");
}

void FlagsWriter::setTypes() {
  if (run.isBf16)
    flags.isBf16 = true;
  (run.hasBf16Gradients ? flags.reducesInBf16 : flags.addsInF32) = true;
  if (run.hasBf16States) {
    flags.choosesStateTypes = true;
    flags.firstMoment = flags.secondMoment = "bf16";
  }
}

void FlagsWriter::setOptimizer() {
  flags.optimizer = run.optimizer == "adamw" ? "adam" : run.optimizer;
  flags.rate = run.learningRate();
  flags.leastRate = run.number("min-learning-rate", 0);
  flags.rateSchedule = run.rateSchedule == "wsd" ? "WSD" : run.rateSchedule;
  flags.warmup = int64_t(run.number("warmup-steps", 0));
  if (run.rateSchedule == "wsd") {
    flags.decayForm = "linear";
    if (run.steps)
      flags.lastDecay =
          int64_t(run.number("decay-share", 0.1) * double(*run.steps) + 0.5);
    else
      missing("decay-share",
              "--lr-wsd-decay-iters is a number of steps; 'steps' gives it");
  }
  flags.weightDecay = run.number("weight-decay", 0.1);
  flags.clip = run.number("gradient-clip", 1);
  if (run.optimizer == "sgd") {
    flags.sgdMomentum = run.number("momentum", 0);
    if (run.isNesterov)
      missing("nesterov", "its sgd has plain momentum");
    return;
  }
  flags.beta1 = run.number("beta1", 0.9);
  flags.beta2 = run.number("beta2", 0.95);
  flags.epsilon = run.number("epsilon", 1e-8);
  if (run.optimizer != "muon")
    return;
  flags.muonMomentum = run.number("momentum", 0.95);
  if (run.isNesterov)
    flags.isNesterov = true;
}

EngineExport FlagsWriter::write() {
  setRanks();
  setPipeline();
  setBatch();
  setRecomputation();
  setModel();
  setExperts();
  setTypes();
  setOptimizer();
  if (run.lossBlocks > 1)
    missing("loss-blocks " + std::to_string(run.lossBlocks),
            "the loss has the logits of the whole sequence");
  if (run.zLoss > 0)
    missing("z-loss " + numberText(run.zLoss), "the loss has no such term");
  std::string text = std::string("# ") + versionOf(Engine::Megatron) +
                     ", for " + std::to_string(run.devices()) +
                     " ranks (WORLD_SIZE); data, tokenizer and "
                     "checkpoints are to be added\n";
  std::string group;
  for (const FlagRow &row : table()) {
    std::optional<std::string> value = row.text(flags);
    if (!value)
      continue;
    if (group != row.group)
      text += std::string("# ") + (group = row.group) + "\n";
    text += row.name + (row.isSwitch() ? "" : " " + *value) + "\n";
  }
  result.files = {{"megatron.args", text}};
  return std::move(result);
}

} // namespace

std::optional<EngineExport> exportFlags(const EngineRun &run,
                                        std::string &error) {
  std::optional<EngineModel> model = readModel(run.config, error);
  if (!model)
    return std::nullopt;
  FlagsWriter exporter(run, *model);
  if (std::string mistake = exporter.mistake(); !mistake.empty()) {
    error = kCannotRun + mistake;
    return std::nullopt;
  }
  return exporter.write();
}

} // namespace rota::engines::megatron
