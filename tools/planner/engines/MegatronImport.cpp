// SPDX-License-Identifier: Apache-2.0
//
// A run of Megatron-LM as a run of Rota.
#include "tools/planner/engines/Megatron.h"

#include "runtime/text/Text.h"

namespace rota::engines::megatron {

namespace {

std::string two(int64_t a, int64_t b) {
  return std::to_string(a) + " and " + std::to_string(b);
}

/// Makes a run of flags, with the engine's values for those not given.
class RunOfFlags {
public:
  RunOfFlags(const Flags &flags, int64_t launched, const ImportRequest &request,
             EngineImport &import, std::string &error)
      : flags(flags), launched(launched), request(request), import(import),
        error(error) {}

  bool read() {
    if (!readRanks() || !readWeights() || !readPipeline() || !readBatch() ||
        !readRecomputation() || !readTypes() || !readOptimizer())
      return false;
    readRest();
    return true;
  }

  EngineRun run;

private:
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
  bool failAt(const char *flag, const std::string &message) {
    return fail(flags.messageAt(flag, message));
  }
  void remark(std::string subject, std::string reason) {
    import.remarks.push_back({std::move(subject), std::move(reason)});
  }

  int64_t ranksOf(int64_t fewest);
  bool readRanks();
  bool readExchanges();
  bool readWeights();
  bool readPipeline();
  bool readChunks(int64_t layers);
  bool agreesOnChunks(const char *flag);
  bool readBatch();
  bool readRecomputation();
  bool readTypes();
  bool readOptimizer();
  bool readRateSchedule();
  void readRest();

  const Flags &flags;
  int64_t launched; // ranks of the launcher's command; 0: it says none
  const ImportRequest &request;
  EngineImport &import;
  std::string &error;
};

/// The ranks of the run, of which its flags take `fewest`; 0: unknown. A search
/// has devices of its own: where the batch is given, the run may have any.
int64_t RunOfFlags::ranksOf(int64_t fewest) {
  if (launched > 0 && (request.devices == 0 || request.isSearched))
    return launched;
  if (request.devices > 0 && request.isSearched && flags.globalBatch)
    return fewest;
  if (launched > 0 && launched != request.devices)
    remark("the launcher's " + counted(launched, "rank"),
           "'devices' " + std::to_string(request.devices) + " is taken");
  return request.devices;
}

bool RunOfFlags::readRanks() {
  int64_t tensor = flags.tensor.value_or(1);
  (flags.sequenceParallel ? run.sequence : run.tensor) = tensor;
  run.stage = flags.pipeline.value_or(1);
  run.context = flags.context.value_or(1);
  run.expert = flags.expert.value_or(1);
  int64_t most = int64_t(1) << 24, fewest = 1;
  for (int64_t size : {tensor, run.stage, run.context, run.expert,
                       flags.instances.value_or(1)})
    if (size > most || (fewest *= size) > most)
      return fail("expected at most " + std::to_string(most) + " ranks");
  int64_t model = tensor * run.stage * run.context;
  int64_t devices = ranksOf(fewest);
  if (devices == 0)
    return fail("expected 'devices' beside the flags: Megatron takes the "
                "number of ranks from its launcher");
  if (devices % model != 0)
    return fail("expected devices that are a multiple of tensor * pipeline * "
                "context ranks, got " +
                two(devices, model));
  run.data = devices / model; // and fsdp and expert, as yet
  if (run.data % run.expert != 0)
    return failAt("--expert-model-parallel-size",
                  "expected a divisor of the data-parallel ranks, got " +
                      two(run.expert, run.data) +
                      "; Rota's experts are not divided over other axes");
  if (run.expert > 1 && !flags.experts && !request.hasModel)
    return failAt("--expert-model-parallel-size",
                  "expected '--num-experts' beside it, got none");
  if (run.expert > 1 && flags.expertTensor.value_or(tensor) != tensor)
    return failAt("--expert-tensor-parallel-size",
                  "expected the tensor-parallel size, got " +
                      two(*flags.expertTensor, tensor));
  run.data /= run.expert;
  return readExchanges();
}

bool RunOfFlags::readExchanges() {
  std::string exchange = flags.contextExchange.value_or("p2p");
  if (exchange == "p2p")
    run.contextExchange = "balanced-ring";
  else if (exchange == "allgather")
    run.contextExchange = "gather";
  else if (run.context > 1)
    return failAt(
        "--cp-comm-type",
        "expected p2p or allgather, as Rota has no all-to-all of heads, got '" +
            exchange + "'");
  run.tensorExchange = flags.tensorOverlap ? "auto" : "gather";
  return true;
}

bool RunOfFlags::readWeights() {
  std::string sharding =
      flags.fsdp ? flags.fsdpSharding.value_or("optim_grads_params") : "";
  int64_t replicas = run.data * run.expert * run.context;
  if (sharding == "optim_grads_params") {
    int64_t instances = flags.instances.value_or(1);
    if (run.data % instances != 0)
      return failAt("--num-distributed-optimizer-instances",
                    "expected a divisor of the data-parallel ranks, got " +
                        two(instances, run.data));
    run.fsdp = run.data / instances;
    run.data = instances;
    run.weightGather = "per-layer";
    return true;
  }
  bool divides = flags.distributedOptimizer || sharding.starts_with("optim");
  run.shardsOptimizer = divides && replicas * run.tensor * run.sequence > 1;
  if (sharding == "optim_grads")
    remark("--data-parallel-sharding-strategy optim_grads",
           "gradients stay whole until they are reduced");
  return true;
}

bool RunOfFlags::readPipeline() {
  int64_t layers = flags.layers.value_or(0);
  if (run.stage == 1)
    return flags.virtualStages.value_or(1) == 1 && !flags.layersPerChunk
               ? true
               : fail("expected '--pipeline-model-parallel-size' above 1 for "
                      "virtual stages, got 1");
  if (layers == 0)
    return fail("'--num-layers' is missing: a pipeline divides them");
  if (!readChunks(layers))
    return false;
  run.schedule = run.repeats > 1 ? "interleaved-1f1b" : "1f1b";
  int64_t sum = 0;
  for (int64_t count : run.layers)
    sum += count;
  return sum == layers ? true
                       : failAt("--pipeline-model-parallel-layout",
                                "expected '--num-layers' layers, got " +
                                    two(sum, layers));
}

/// Two flags may say the chunks of a rank.
bool RunOfFlags::agreesOnChunks(const char *flag) {
  int64_t said = flags.virtualStages.value_or(run.repeats);
  return said == run.repeats ||
         failAt(flag, "expected the chunks on a rank that "
                      "'--num-virtual-stages-per-pipeline-rank' says, got " +
                          two(run.repeats, said));
}

/// The layers of each chunk: those of the layout, or equal numbers but for the
/// ends.
bool RunOfFlags::readChunks(int64_t layers) {
  if (flags.layout) {
    auto counts = readLayout(*flags.layout, error);
    if (!counts)
      return failAt("--pipeline-model-parallel-layout", error);
    if (int64_t(counts->size()) % run.stage != 0)
      return failAt("--pipeline-model-parallel-layout",
                    "expected a multiple of the pipeline's ranks, got " +
                        two(int64_t(counts->size()), run.stage) +
                        " chunks and ranks");
    run.repeats = int64_t(counts->size()) / run.stage;
    run.layers = *counts;
    return agreesOnChunks("--pipeline-model-parallel-layout");
  }
  int64_t embedding = flags.countsEmbedding ? 1 : 0;
  int64_t loss = flags.countsLoss ? 1 : 0;
  int64_t first = flags.firstLayers.value_or(-1);
  int64_t last = flags.lastLayers.value_or(-1);
  int64_t ranks = run.stage - (first >= 0) - (last >= 0);
  int64_t rest = layers + embedding + loss - std::max<int64_t>(first, 0) -
                 std::max<int64_t>(last, 0);
  if (rest < 0 || (ranks == 0 ? rest != 0 : rest % ranks != 0))
    return failAt("--num-layers",
                  "expected a multiple of the pipeline's ranks, without layers "
                  "of the first and the last one where they are given, and "
                  "with the embedding and the loss where they count, got " +
                      two(rest, ranks));
  int64_t each = ranks == 0 ? 0 : rest / ranks;
  run.repeats = flags.virtualStages.value_or(1);
  if (flags.layersPerChunk) {
    if (each % *flags.layersPerChunk != 0)
      return failAt("--num-layers-per-virtual-pipeline-stage",
                    "expected a divisor of the layers of a rank, got " +
                        two(*flags.layersPerChunk, each));
    run.repeats = each / *flags.layersPerChunk;
    if (!agreesOnChunks("--num-layers-per-virtual-pipeline-stage"))
      return false;
  }
  if (run.repeats * run.stage > layers + 2)
    return fail("expected at most a chunk for each layer, the embedding and "
                "the loss, got " +
                two(run.repeats * run.stage, layers));
  for (int64_t chunk = 0; chunk < run.repeats * run.stage; ++chunk) {
    int64_t rank = chunk % run.stage;
    int64_t own = rank == 0 && first >= 0              ? first
                  : rank == run.stage - 1 && last >= 0 ? last
                                                       : each;
    if (own % run.repeats != 0)
      return failAt("--num-virtual-stages-per-pipeline-rank",
                    "expected a divisor of the layers of a rank, got " +
                        two(run.repeats, own));
    run.layers.push_back(own / run.repeats);
  }
  run.layers.front() -= embedding;
  run.layers.back() -= loss;
  return true;
}

bool RunOfFlags::readBatch() {
  if (!flags.microBatch || !flags.sequenceLength)
    return fail(std::string("'") +
                (flags.microBatch ? "--seq-length" : "--micro-batch-size") +
                "' is missing");
  int64_t part = *flags.microBatch * run.batchRanks();
  run.batch = flags.globalBatch.value_or(part);
  run.length = *flags.sequenceLength;
  if (run.batch % part != 0)
    return failAt("--global-batch-size",
                  "expected a multiple of '--micro-batch-size' * data-parallel "
                  "ranks, got " +
                      two(run.batch, part));
  (run.stage > 1 ? run.microbatches : run.accumulate) = run.batch / part;
  if (run.repeats > 1 && run.microbatches % run.stage != 0)
    return failAt("--global-batch-size",
                  "expected microbatches that are a multiple of the pipeline's "
                  "ranks, got " +
                      two(run.microbatches, run.stage));
  run.steps = flags.steps;
  return true;
}

bool RunOfFlags::readRecomputation() {
  // As the engine has it, the older flag counts where both are given.
  std::string granularity =
      flags.recomputesCore ? "selective" : flags.recomputed.value_or("");
  if (flags.recomputed.value_or(granularity) != granularity)
    remark("--recompute-granularity " + *flags.recomputed,
           "--recompute-activations says selective, and counts");
  if (granularity.empty())
    return true;
  if (granularity == "selective") {
    std::string modules = flags.recomputedModules.value_or("core_attn");
    // Fused attention keeps no scores.
    if (modules != "core_attn")
      remark("--recompute-modules " + modules,
             "only core_attn has an equivalent; 'remat' none is taken");
    return true;
  }
  if (granularity != "full")
    return failAt("--recompute-granularity",
                  "expected full or selective, got '" + granularity + "'");
  run.remat = "full";
  int64_t layers = flags.recomputedLayers.value_or(1);
  bool isBlock = flags.recomputeMethod.value_or("uniform") == "block";
  int64_t ofRank = (flags.layers.value_or(0) + run.stage - 1) / run.stage;
  if (isBlock ? layers < ofRank : layers > 1)
    remark("--recompute-num-layers " + std::to_string(layers),
           "each layer is recomputed by itself, and all of them");
  return true;
}

bool RunOfFlags::readTypes() {
  if (flags.isFp16)
    return failAt("--fp16",
                  "expected --bf16 or none, as Rota computes in bf16 and f32");
  run.isBf16 = flags.isBf16.has_value();
  run.hasBf16Gradients = flags.reducesInBf16 && run.isBf16;
  auto isBf16 = [](const std::optional<std::string> &type) {
    return type == "bf16";
  };
  run.hasBf16States = isBf16(flags.firstMoment) && isBf16(flags.secondMoment);
  if (isBf16(flags.firstMoment) != isBf16(flags.secondMoment))
    remark("--exp-avg-dtype, --exp-avg-sq-dtype",
           "both states have one type: f32");
  return true;
}

bool RunOfFlags::readRateSchedule() {
  run.rateSchedule = flags.rateSchedule.value_or("linear");
  if (run.rateSchedule == "WSD")
    run.rateSchedule = "wsd";
  if (run.rateSchedule == "inverse-square-root") {
    remark("--lr-decay-style inverse-square-root", "linear is taken");
    run.rateSchedule = "linear";
  }
  if (run.rateSchedule != "constant" && run.rateSchedule != "linear" &&
      run.rateSchedule != "cosine" && run.rateSchedule != "wsd")
    return failAt("--lr-decay-style",
                  "expected constant, linear, cosine or WSD, got '" +
                      run.rateSchedule + "'");
  if (run.rateSchedule == "wsd" && flags.lastDecay && flags.steps)
    run.numbers["decay-share"] =
        std::min(1.0, double(*flags.lastDecay) / double(*flags.steps));
  if (flags.rate) {
    run.numbers["learning-rate"] = *flags.rate;
    run.numbers["min-learning-rate"] = flags.leastRate.value_or(0);
  }
  run.numbers["warmup-steps"] = double(flags.warmup.value_or(0));
  return true;
}

bool RunOfFlags::readOptimizer() {
  std::string name = flags.optimizer.value_or("adam");
  run.optimizer = name == "adam" ? "adamw" : name;
  if (run.optimizer != "adamw" && run.optimizer != "sgd" &&
      run.optimizer != "muon")
    return failAt("--optimizer",
                  "expected adam, sgd or muon, got '" + name + "'");
  run.numbers["weight-decay"] = flags.weightDecay.value_or(0.01);
  run.numbers["gradient-clip"] = flags.clip.value_or(1);
  if (run.optimizer == "sgd") {
    run.numbers["momentum"] = flags.sgdMomentum.value_or(0.9);
  } else {
    run.numbers["beta1"] = flags.beta1.value_or(0.9);
    run.numbers["beta2"] = flags.beta2.value_or(0.999);
    run.numbers["epsilon"] = flags.epsilon.value_or(1e-8);
  }
  if (run.optimizer == "muon") {
    run.numbers["momentum"] = flags.muonMomentum.value_or(0.9);
    run.isNesterov = flags.isNesterov.has_value();
  }
  return readRateSchedule();
}

void RunOfFlags::readRest() {
  for (auto [flag, share] :
       {std::pair("--attention-dropout", flags.attentionDropout),
        {"--hidden-dropout", flags.hiddenDropout}})
    if (share.value_or(0.1) > 0)
      remark(std::string(flag) + " " + numberText(share.value_or(0.1)) +
                 (share ? "" : ", its default"),
             "models train without dropout");
  if (run.expert > 1 && !flags.expertCapacity)
    remark("--expert-model-parallel-size", kExpertRoom);
  if (flags.expertCapacity) {
    run.expertCapacity = *flags.expertCapacity;
    remark("--moe-expert-capacity-factor",
           "it counts the even share of a sequence, not that of a rank's "
           "tokens of a microbatch");
  }
  run.routerZLoss = flags.routerZLoss.value_or(0);
}

} // namespace

std::optional<EngineImport> importFlags(const ImportRequest &request,
                                        std::string &error) {
  Flags flags;
  EngineImport import;
  int64_t launched = 0;
  if (!readFlags(request, flags, launched, import, error))
    return std::nullopt;
  RunOfFlags reader(flags, launched, request, import, error);
  if (!reader.read())
    return std::nullopt;
  import.options = optionsOf(reader.run);
  if (request.hasModel)
    return import;
  std::optional<EngineModel> model = modelOf(flags, error);
  if (!model)
    return std::nullopt;
  import.modelName = model->family;
  import.config = writeModel(*model);
  return import;
}

} // namespace rota::engines::megatron
