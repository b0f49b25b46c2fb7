// SPDX-License-Identifier: Apache-2.0
//
// A run as a configuration of MaxText, spelled as in its configs/base.yml and
// configs/types.py.
#include "tools/planner/engines/Export.h"

#include "runtime/text/Text.h"

#include <algorithm>

namespace rota::engines {

namespace {

/// Writes the keys of one run.
class KeysWriter {
public:
  KeysWriter(const EngineRun &run, const EngineModel &model)
      : run(run), model(model) {}

  /// Empty, or what MaxText cannot run at all.
  std::string mistake() const;
  EngineExport write();

private:
  void writeModel();
  void writeExperts();
  void writeRanks();
  void writePipeline();
  void writeRemat();
  void writeBatch();
  void writeTypes();
  void writeOptimizer();

  void group(const char *title) { text += std::string("\n# ") + title + "\n"; }
  void key(const std::string &name, const std::string &value) {
    text += name + ": " + value + "\n";
  }
  void key(const std::string &name, int64_t value) {
    key(name, std::to_string(value));
  }
  void real(const std::string &name, double value) {
    // YAML 1.1 reads a number with an exponent as one if it has a point.
    std::string number = numberText(value);
    size_t exponent = number.find('e');
    if (exponent != number.npos && number.find('.') == number.npos)
      number.insert(exponent, ".0");
    key(name, number);
  }
  void quoted(const std::string &name, const std::string &value) {
    key(name, "\"" + value + "\"");
  }
  void missing(std::string subject, std::string reason) {
    result.missing.push_back({std::move(subject), std::move(reason)});
  }

  const EngineRun &run;
  const EngineModel &model;
  std::string text;
  EngineExport result;
};

/// The decoder block of each family.
constexpr std::pair<const char *, const char *> kBlocks[] = {
    {"gpt2", "gpt3"},          {"llama", "llama2"}, {"mistral", "mistral"},
    {"mixtral", "mixtral"},    {"qwen2", "qwen2"},  {"qwen3", "qwen3"},
    {"qwen3_moe", "qwen3_moe"}};

/// The policies that both have under one name.
constexpr const char *kPolicies[] = {"full",
                                     "minimal",
                                     "save_dot_with_context_except_mlp",
                                     "save_dot_except_mlpwi",
                                     "save_dot_except_mlp",
                                     "save_qkv_proj",
                                     "save_out_proj",
                                     "minimal_offloaded",
                                     "qkv_proj_offloaded"};

/// The names of values that a policy of one's own may place.
constexpr const char *kNames[] = {"decoder_layer_input",
                                  "context",
                                  "mlpwi",
                                  "mlpwi_0",
                                  "mlpwi_1",
                                  "mlpwo",
                                  "query_proj",
                                  "key_proj",
                                  "kv_proj",
                                  "qkv_proj",
                                  "value_proj",
                                  "out_proj",
                                  "attention_out"};

std::string KeysWriter::mistake() const {
  auto number = [](int64_t value) { return std::to_string(value); };
  if (run.stage > 1 && std::ranges::any_of(run.layers, [&](int64_t count) {
        return count != run.layers.front();
      }))
    return "expected chunks with equal numbers of layers, got " +
           number(run.layers.front()) + " in the first and " +
           number(*std::ranges::max_element(run.layers)) +
           " in the fullest; 'pipeline-layers' leaves some outside of the "
           "pipeline";
  if (run.stage > 1 && run.microbatches % run.stage != 0)
    return "expected microbatches that are a multiple of the stages, got " +
           number(run.microbatches) + " and " + number(run.stage);
  if (run.delay > 1 && run.microbatches < 2 * run.stage)
    return "expected at least 2 * stages microbatches with a delay, got " +
           number(run.microbatches) + " and " + number(run.stage);
  return "";
}

void KeysWriter::writeModel() {
  bool isGpt2 = model.family == "gpt2";
  group("Model");
  auto block = std::ranges::find_if(
      kBlocks, [&](const auto &row) { return row.first == model.family; });
  quoted("decoder_block", block->second);
  key("base_emb_dim", model.embed);
  key("base_num_query_heads", model.heads);
  key("base_num_kv_heads", model.keyHeads);
  key("head_dim", model.headSize);
  // A model of experts alone has their width.
  key("base_mlp_dim",
      model.experts > 0 ? model.expertFeedForward : model.feedForward);
  key("base_num_decoder_layers", model.layers);
  key("vocab_size", model.vocabulary);
  key("mlp_activations", isGpt2 ? "[\"gelu\"]" : "[\"silu\", \"linear\"]");
  key("logits_via_embedding", model.tied ? "true" : "false");
  key("normalize_embedding_logits", "false");
  real("normalization_layer_epsilon", model.normEpsilon);
  key("enable_dropout", "false");
  if (isGpt2) {
    key("trainable_position_size", model.positions);
    key("fused_qkv", "true");
  } else {
    quoted("rope_type", model.rotaryFactor ? "llama3.1" : "default");
    key("rope_max_timescale", int64_t(model.rotaryBase));
  }
  if (model.rotaryFactor.value_or(8) != 8)
    missing("rope_scaling factor " + numberText(*model.rotaryFactor),
            "the factor of llama3.1 is 8 there");
  if (model.family == "qwen2")
    key("attention_bias", "true");
  if (model.family.starts_with("qwen3"))
    key("use_qk_norm", "true");
  if (model.window) {
    quoted("attention_type", "local_sliding");
    key("sliding_window_size", *model.window);
  }
  if (run.zLoss > 0)
    real("z_loss_multiplier", run.zLoss);
  writeExperts();
}

void KeysWriter::writeExperts() {
  if (model.experts == 0)
    return;
  key("num_experts", model.experts);
  key("num_experts_per_tok", model.choices);
  key("base_moe_mlp_dim", model.expertFeedForward);
  if (model.family == "qwen3_moe")
    key("norm_topk_prob", model.normalizesChoices ? "true" : "false");
  double balance = run.number("load-balance-loss", model.balanceLoss);
  real("load_balance_loss_weight", balance);
  real("capacity_factor", run.expertCapacity > 0 ? run.expertCapacity : -1);
  if (run.expertCapacity > 0)
    key("sparse_matmul", "false"); // which drops nothing
  real("ragged_buffer_factor", run.expertBuffer > 0 ? run.expertBuffer : -1);
  if (run.expertBuffer > 0)
    missing("expert-buffer " + numberText(run.expertBuffer),
            "rows that exceed ragged_buffer_factor are dropped, not an error");
  if (run.routerZLoss > 0)
    missing("router-z-loss " + numberText(run.routerZLoss),
            "routers have no such loss");
}

void KeysWriter::writeRanks() {
  group("Ranks: one slice; axes between slices are moved to dcn_*");
  key("dcn_data_parallelism", 1);
  key("ici_data_parallelism", run.data);
  key("ici_pipeline_parallelism", run.stage);
  key("ici_fsdp_parallelism", run.fsdp);
  key("ici_context_parallelism", run.context);
  key("ici_tensor_parallelism", run.tensor);
  key("ici_tensor_sequence_parallelism", run.sequence);
  key("ici_expert_parallelism", run.expert);
  if (run.shardsOptimizer) {
    key("shard_optimizer_over_data", "true");
    if (run.context * run.expert * run.tensor * run.sequence > 1)
      missing("shard-optimizer", "states are divided over the data axis alone");
  }
  if (run.context > 1) {
    bool gathers = run.contextExchange == "gather";
    quoted("context_parallel_strategy", gathers ? "all_gather" : "ring");
    key("context_parallel_load_balance",
        run.contextExchange == "ring" ? "false" : "true");
    missing("context=" + std::to_string(run.context),
            "weights at rest are divided over these ranks, too");
  }
  if (run.expert > 1)
    missing("expert=" + std::to_string(run.expert),
            "weights beside the experts are divided over these ranks, too");
  if (run.tensorExchange != "gather" && run.tensor * run.sequence > 1)
    missing("tensor-exchange " + run.tensorExchange,
            "the compiler decides how products overlap with transfers");
}

void KeysWriter::writePipeline() {
  if (run.stage == 1)
    return;
  group("Pipeline");
  key("num_layers_per_pipeline_stage", run.layers.front());
  key("num_pipeline_repeats", run.repeats);
  key("num_pipeline_microbatches", run.microbatches);
  if (run.unpipelined > 0)
    key("pipeline_parallel_layers", model.layers - run.unpipelined);
  if (run.delay > 1)
    key("pipeline_delay_activation_forwarding", "true");
  if (run.fsdp > 1) {
    key("pipeline_fsdp_ag_once", run.weightGather == "once" ? "true" : "false");
    key("pipeline_fsdp_ag_per_repeat",
        run.weightGather == "per-repeat" ? "true" : "false");
    if (run.weightGather == "per-layer")
      missing("weight-gather per-layer",
              "the weights of a stage are gathered for each microbatch");
  }
  bool isCircular = run.schedule == "circular" ||
                    (run.schedule == "gpipe" && !run.isV && run.repeats == 1);
  if (!isCircular)
    missing("schedule " + run.schedule,
            "its one pipeline is 'circular': all forwards, then all backwards; "
            "plan that for its bytes and its time");
}

void KeysWriter::writeRemat() {
  group("Rematerialization");
  std::string policy = run.remat;
  if (size_t end = policy.find(';'); end != policy.npos) {
    missing("remat " + policy, "all layers have one policy: the first one");
    policy.resize(end);
  }
  if (std::ranges::find(kPolicies, policy) != std::end(kPolicies)) {
    quoted("remat_policy", policy);
    return;
  }
  if (policy == "minimal_with_context")
    return quoted("remat_policy", policy);
  quoted("remat_policy", "custom");
  if (policy == "none") {
    for (const char *name : kNames)
      quoted(name, "device");
    missing("remat none", "only named values are kept");
    return;
  }
  for (size_t begin = 0, end; begin < policy.size(); begin = end + 1) {
    end = std::min(policy.find(',', begin), policy.size());
    std::string part = policy.substr(begin, end - begin);
    size_t equals = part.find('=');
    if (equals == part.npos)
      missing("remat " + part, "a policy with changes has no name");
    else
      quoted(part.substr(0, equals), part.substr(equals + 1));
  }
}

void KeysWriter::writeBatch() {
  group("Batch");
  int64_t sequences = run.batch / run.accumulate;
  int64_t perStep = run.accumulate * (run.stage > 1 ? 1 : run.microbatches);
  double perDevice = double(sequences) / double(run.devices());
  if (run.stage == 1)
    perDevice /= double(run.microbatches);
  real("per_device_batch_size", perDevice);
  key("gradient_accumulation_steps", perStep);
  key("max_target_length", run.length);
  if (run.lossBlocks > 1) {
    key("num_vocab_tiling", run.lossBlocks);
    missing("loss-blocks " + std::to_string(run.lossBlocks),
            "num_vocab_tiling cuts the tokens of all sequences together");
  }
}

void KeysWriter::writeTypes() {
  group("Types");
  quoted("dtype", run.isBf16 ? "bfloat16" : "float32");
  quoted("weight_dtype", "float32");
  quoted("grad_dtype", run.hasBf16Gradients ? "bfloat16" : "float32");
  if (run.hasBf16States) {
    quoted("mu_dtype", "bfloat16");
    missing("state-dtype bf16", "the second moment has the type of weights");
  }
}

void KeysWriter::writeOptimizer() {
  group("Optimizer");
  quoted("opt_type", run.optimizer);
  real("learning_rate", run.learningRate());
  if (run.rateSchedule == "linear" || run.rateSchedule == "constant")
    missing("learning-rate-schedule " + run.rateSchedule,
            "there are cosine and wsd; cosine is written");
  bool isWsd = run.rateSchedule == "wsd";
  quoted("lr_schedule_type", isWsd ? "wsd" : "cosine");
  real("learning_rate_final_fraction", run.lastRateShare());
  if (isWsd)
    real("wsd_decay_steps_fraction", run.number("decay-share", 0.1));
  double warmup = run.number("warmup-steps", 0);
  if (run.steps) {
    key("steps", *run.steps);
    real("warmup_steps_fraction", warmup / double(*run.steps));
  } else if (warmup > 0) {
    missing("warmup-steps " + numberText(warmup),
            "the warm-up is a fraction of the steps; 'steps' gives it");
  } else {
    real("warmup_steps_fraction", 0);
  }
  real("gradient_clipping_threshold", run.number("gradient-clip", 1));
  if (run.optimizer == "sgd")
    return;
  real("adam_b1", run.number("beta1", 0.9));
  real("adam_b2", run.number("beta2", 0.95));
  real("adam_eps", run.number("epsilon", 1e-8));
  if (run.optimizer != "muon")
    return real("adam_weight_decay", run.number("weight-decay", 0.1));
  real("muon_beta", run.number("momentum", 0.95));
  real("muon_weight_decay", run.number("weight-decay", 0.1));
}

EngineExport KeysWriter::write() {
  text = std::string("# ") + versionOf(Engine::MaxText) + ", for " +
         std::to_string(run.devices()) +
         " devices; data, tokenizer and checkpoints are to "
         "be added\n";
  quoted("base_config", "base.yml");
  writeModel();
  writeRanks();
  writePipeline();
  writeRemat();
  writeBatch();
  writeTypes();
  writeOptimizer();
  result.files = {{"maxtext.yml", text}};
  return std::move(result);
}

} // namespace

std::optional<EngineExport> exportMaxText(const EngineRun &run,
                                          std::string &error) {
  std::optional<EngineModel> model = readModel(run.config, error);
  if (!model)
    return std::nullopt;
  KeysWriter exporter(run, *model);
  if (std::string mistake = exporter.mistake(); !mistake.empty()) {
    error = kCannotRun + mistake;
    return std::nullopt;
  }
  return exporter.write();
}

} // namespace rota::engines
