// SPDX-License-Identifier: Apache-2.0
//
// A run as a configuration of torchtitan.
#include "tools/planner/engines/TorchTitan.h"

#include <algorithm>

namespace rota::engines::torchtitan {

namespace {

/// Writes the settings of one run.
class SettingsWriter {
public:
  SettingsWriter(const EngineRun &run, const EngineModel &model)
      : run(run), model(model) {}

  /// Empty, or what torchtitan cannot run at all.
  std::string mistake() const;
  EngineExport write();

private:
  const Flavor *flavor() const;
  void setModel();
  void setRanks();
  void setPipeline();
  void setExchanges();
  void setTraining();
  void setOptimizer();
  std::string text() const;
  std::string modules() const;
  void missing(std::string subject, std::string reason) {
    result.missing.push_back({std::move(subject), std::move(reason)});
  }

  const EngineRun &run;
  const EngineModel &model;
  Settings settings;
  EngineExport result;
};

/// Sizes alone make a flavor: the length of a sequence and the numbers of the
/// initialization are settings of the run.
bool hasSizesOf(const EngineModel &a, const EngineModel &b) {
  EngineModel same = a;
  same.positions = b.positions;
  same.initializerRange = b.initializerRange;
  same.balanceLoss = b.balanceLoss;
  return same == b;
}

const Flavor *SettingsWriter::flavor() const {
  for (const Flavor &flavor : flavors())
    if (hasSizesOf(model, flavor.model))
      return &flavor;
  return nullptr;
}

std::string SettingsWriter::mistake() const {
  auto number = [](int64_t value) { return std::to_string(value); };
  bool isLlama = model.family == "llama",
       isQwen = model.family == "qwen3" || model.family == "qwen3_moe";
  if (!isLlama && !isQwen)
    return "expected a model of one of llama, qwen3, qwen3_moe, as torchtitan "
           "has no '" +
           model.family + "' of this form";
  if (isQwen && run.stage > 1)
    return "expected stage=1, as torchtitan does not divide qwen3 into stages, "
           "got stage=" +
           number(run.stage);
  if (run.tensor > 1 && run.sequence > 1)
    return "expected one of the axes tensor and sequence, got " +
           number(run.tensor) + " and " + number(run.sequence);
  if (run.unpipelined > 0)
    return "expected all layers in the pipeline, got " +
           number(run.unpipelined) + " outside of it";
  if (run.data > 1 && run.fsdp * run.expert * run.context == 1 &&
      run.devices() != run.data)
    return "expected fsdp=" + number(run.data) +
           " in the place of data=" + number(run.data) +
           ", or an fsdp axis beside it: replicas without divided weights "
           "(DDP) have no other axis there";
  int64_t divisor = run.tensor * run.sequence * 2 * run.context;
  if (run.length % divisor != 0)
    return "expected a sequence length that is a multiple of 2 * context * "
           "tensor ranks, got " +
           number(run.length) + " and " + number(divisor);
  return "";
}

void SettingsWriter::setModel() {
  settings.modelName = model.family == "llama" ? "llama3" : "qwen3";
  if (const Flavor *known = flavor()) {
    settings.flavor = known->flavor;
    return;
  }
  settings.flavor = "FLAVOR";
  missing("model " + run.modelName,
          "no flavor has its sizes: add one to the arguments of '" +
              *settings.modelName + "' and name it in the place of FLAVOR");
}

void SettingsWriter::setRanks() {
  settings.replicas = run.data;
  settings.shards = run.fsdp * run.expert;
  settings.tensor = run.tensor * run.sequence;
  settings.pipeline = run.stage;
  settings.context = run.context;
  if (run.expert > 1) {
    settings.expert = run.expert;
    settings.expertTensor = *settings.tensor;
    if (run.fsdp * run.expert > run.fsdp)
      missing("expert=" + std::to_string(run.expert),
              "weights beside the experts are divided over these ranks, too");
  }
  if (run.tensor > 1)
    missing("tensor=" + std::to_string(run.tensor),
            "its tensor parallelism divides activations between blocks along "
            "their length, as sequence=" +
                std::to_string(run.tensor) + " does");
  if (run.context > 1)
    missing("context=" + std::to_string(run.context),
            "weights are divided over these ranks, too");
  if (run.shardsOptimizer)
    missing("shard-optimizer",
            "states are divided as weights are, over the shard ranks alone");
}

void SettingsWriter::setPipeline() {
  if (run.stage == 1)
    return;
  settings.microbatchSize = run.microbatchSize();
  for (const ScheduleName &name : scheduleNames())
    if (run.schedule == name.ours && run.isV == name.isV &&
        (run.repeats > 1) == name.hasSeveralChunks) {
      settings.schedule = name.theirs;
      if (name.isSame)
        return;
    }
  // A file says the order. The name says how chunks are placed.
  if (!settings.schedule)
    settings.schedule = run.isV           ? "ZBVZeroBubble"
                        : run.repeats > 1 ? "PipelineScheduleMulti"
                                          : "PipelineScheduleSingle";
  settings.scheduleFile = "schedule.csv";
}

void SettingsWriter::setExchanges() {
  if (run.context > 1) {
    settings.rotation =
        run.contextExchange == "gather" ? "allgather" : "alltoall";
    if (run.contextExchange == "ring")
      missing("context-exchange ring",
              "its load balancer (headtail) gives all ranks equal work, as "
              "balanced-ring does");
  }
  if (run.tensor * run.sequence > 1 && run.tensorExchange != "gather")
    settings.overlapsTensor = true;
  if (run.fsdp == 1)
    return;
  bool keeps = run.weightGather == "once" || run.weightGather == "per-repeat";
  settings.reshard = keeps ? "never" : "always";
  if (run.weightGather == "per-repeat" || run.weightGather == "per-iteration")
    missing("weight-gather " + run.weightGather,
            std::string("weights of a layer are gathered ") +
                (keeps ? "once" : "for each use"));
}

void SettingsWriter::setTraining() {
  settings.localBatch =
      run.microbatchSize() * (run.stage > 1 ? run.microbatches : 1);
  settings.globalBatch = run.batch;
  settings.sequenceLength = run.length;
  settings.steps = run.steps;
  settings.clip = run.number("gradient-clip", 1);
  settings.dtype = "float32";
  settings.computeType = run.isBf16 ? "bfloat16" : "float32";
  settings.reduceType = "float32";
  if (run.hasBf16Gradients)
    missing("gradient-dtype bf16", "gradients are reduced in float32");
  if (run.hasBf16States)
    missing("state-dtype bf16", "states have the type of master weights");
  if (run.remat == "none" || run.remat == "full") {
    settings.recomputed = run.remat;
  } else {
    settings.recomputed = "selective";
    settings.selection = "op";
    missing("remat " + run.remat,
            "'selective' with 'op' keeps every second product and the results "
            "of attention and communication");
  }
  if (run.lossBlocks > 1)
    missing("loss-blocks " + std::to_string(run.lossBlocks),
            "the loss has the logits of the whole sequence");
  for (auto [name, value] : {std::pair("z-loss", run.zLoss),
                             {"router-z-loss", run.routerZLoss},
                             {"expert-capacity", run.expertCapacity},
                             {"expert-buffer", run.expertBuffer}})
    if (value > 0)
      missing(std::string(name) + " " + numberText(value),
              "there is no such setting");
}

void SettingsWriter::setOptimizer() {
  settings.optimizer = "AdamW";
  if (run.optimizer != "adamw")
    missing("optimizer " + run.optimizer, "AdamW is written");
  settings.rate = run.learningRate();
  settings.beta1 = run.number("beta1", 0.9);
  settings.beta2 = run.number("beta2", 0.95);
  settings.epsilon = run.number("epsilon", 1e-8);
  settings.weightDecay = run.number("weight-decay", 0.1);
  settings.warmup = int64_t(run.number("warmup-steps", 0));
  settings.rateForm = run.rateSchedule == "cosine" ? "cosine" : "linear";
  bool isConstant = run.rateSchedule == "constant";
  settings.rateShare = isConstant ? 1.0 : run.lastRateShare();
  if (run.rateSchedule == "wsd")
    settings.decayShare = run.number("decay-share", 0.1);
}

/// The modules of each chunk as an array of arrays.
std::string SettingsWriter::modules() const {
  std::string text = std::string(kModules) + " = [\n";
  int64_t layer = 0;
  for (size_t chunk = 0; chunk < run.layers.size(); ++chunk) {
    std::string names = chunk == 0 ? "\"tok_embeddings\"" : "";
    auto add = [&](const std::string &name) {
      names += (names.empty() ? "\"" : ", \"") + name + "\"";
    };
    for (int64_t i = 0; i < run.layers[chunk]; ++i)
      add("layers." + std::to_string(layer++));
    if (chunk + 1 == run.layers.size()) {
      add("norm");
      add("output");
    }
    text += "    [" + names + "],\n";
  }
  return text + "]\n";
}

std::string SettingsWriter::text() const {
  std::string text = std::string("# ") + versionOf(Engine::TorchTitan) +
                     ", for " + std::to_string(run.devices()) +
                     " ranks (NGPU); data, tokenizer and checkpoints are to "
                     "be added\n";
  std::string group;
  for (const SettingRow &row : table()) {
    std::optional<std::string> value = row.text(settings);
    if (!value)
      continue;
    if (group != row.group)
      text += "\n[" + (group = row.group) + "]\n";
    bool isReal =
        std::holds_alternative<std::optional<double> Settings::*>(row.field);
    if (isReal && value->find_first_of(".e") == value->npos)
      *value += ".0";
    text += row.name + std::string(" = ") +
            (row.isText() ? "\"" + *value + "\"" : *value) + "\n";
    // The modules stand beside the degree of the pipeline.
    bool isLast = row.field == SettingRow::Field(&Settings::pipeline);
    if (isLast && run.stage > 1)
      text += modules();
  }
  return text;
}

EngineExport SettingsWriter::write() {
  setModel();
  setRanks();
  setPipeline();
  setExchanges();
  setTraining();
  setOptimizer();
  result.files = {{"torchtitan.toml", text()}};
  if (settings.scheduleFile)
    result.files.push_back({*settings.scheduleFile, run.timeline});
  return std::move(result);
}

} // namespace

std::optional<EngineExport> exportSettings(const EngineRun &run,
                                           std::string &error) {
  std::optional<EngineModel> model = readModel(run.config, error);
  if (!model)
    return std::nullopt;
  SettingsWriter exporter(run, *model);
  if (std::string mistake = exporter.mistake(); !mistake.empty()) {
    error = kCannotRun + mistake;
    return std::nullopt;
  }
  return exporter.write();
}

} // namespace rota::engines::torchtitan
