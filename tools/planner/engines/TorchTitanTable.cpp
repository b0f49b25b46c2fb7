// SPDX-License-Identifier: Apache-2.0
//
// The settings that a plan depends on, for import and export alike, those that
// none does, and torchtitan's models and schedules by their names.
#include "runtime/options/Option.h"
#include "tools/planner/engines/TorchTitan.h"

namespace rota::engines::torchtitan {

static const SettingRow rows[] = {
    {"model", "name", &Settings::modelName},
    {"model", "flavor", &Settings::flavor},

    {"optimizer", "name", &Settings::optimizer},
    {"optimizer", "lr", &Settings::rate, 0},
    {"optimizer", "beta1", &Settings::beta1, 0},
    {"optimizer", "beta2", &Settings::beta2, 0},
    {"optimizer", "eps", &Settings::epsilon, 0},
    {"optimizer", "weight_decay", &Settings::weightDecay, 0},

    {"lr_scheduler", "warmup_steps", &Settings::warmup, 0},
    {"lr_scheduler", "decay_ratio", &Settings::decayShare, 0},
    {"lr_scheduler", "decay_type", &Settings::rateForm},
    {"lr_scheduler", "min_lr_factor", &Settings::rateShare, 0},

    {"training", "local_batch_size", &Settings::localBatch, 1},
    {"training", "global_batch_size", &Settings::globalBatch, -1},
    {"training", "seq_len", &Settings::sequenceLength, 1},
    {"training", "max_norm", &Settings::clip, 0},
    {"training", "steps", &Settings::steps, 1},
    {"training", "dtype", &Settings::dtype},
    {"training", "mixed_precision_param", &Settings::computeType},
    {"training", "mixed_precision_reduce", &Settings::reduceType},
    {"training", "enable_cpu_offload", &Settings::offloadsWeights},

    {"parallelism", "data_parallel_replicate_degree", &Settings::replicas, 1},
    {"parallelism", "data_parallel_shard_degree", &Settings::shards, -1},
    {"parallelism", "fsdp_reshard_after_forward", &Settings::reshard},
    {"parallelism", "tensor_parallel_degree", &Settings::tensor, 1},
    {"parallelism", "enable_async_tensor_parallel", &Settings::overlapsTensor},
    {"parallelism", "pipeline_parallel_degree", &Settings::pipeline, 1},
    {"parallelism", "pipeline_parallel_schedule", &Settings::schedule},
    {"parallelism", "pipeline_parallel_schedule_csv", &Settings::scheduleFile},
    {"parallelism", "pipeline_parallel_microbatch_size",
     &Settings::microbatchSize, 1},
    {"parallelism", "pipeline_parallel_layers_per_stage",
     &Settings::layersPerChunk, 1},
    {"parallelism", "pipeline_parallel_first_stage_less_layers",
     &Settings::firstLess, 0},
    {"parallelism", "pipeline_parallel_last_stage_less_layers",
     &Settings::lastLess, 0},
    {"parallelism", "context_parallel_degree", &Settings::context, 1},
    {"parallelism", "context_parallel_load_balancer", &Settings::balancer},
    {"parallelism", "context_parallel_rotate_method", &Settings::rotation},
    {"parallelism", "expert_parallel_degree", &Settings::expert, 1},
    {"parallelism", "expert_tensor_parallel_degree", &Settings::expertTensor,
     1},

    {"activation_checkpoint", "mode", &Settings::recomputed},
    {"activation_checkpoint", "selective_ac_option", &Settings::selection},

    {"debug", "seed", &Settings::seed, 0},
};

std::span<const SettingRow> table() { return rows; }

/// All settings of the version.
static constexpr std::string_view names =
    "job.config_file job.dump_folder job.description job.print_config "
    "job.save_config_file job.custom_config_module profiling.enable_profiling "
    "profiling.save_traces_folder profiling.profile_freq "
    "profiling.profiler_active profiling.profiler_warmup "
    "profiling.enable_memory_snapshot profiling.save_memory_snapshot_folder "
    "metrics.log_freq metrics.enable_tensorboard "
    "metrics.disable_color_printing metrics.save_tb_folder "
    "metrics.save_for_all_ranks metrics.enable_wandb model.name model.flavor "
    "model.hf_assets_path model.tokenizer_path model.converters "
    "model.print_after_conversion optimizer.name optimizer.lr optimizer.beta1 "
    "optimizer.beta2 optimizer.eps optimizer.weight_decay "
    "optimizer.implementation optimizer.early_step_in_backward "
    "lr_scheduler.warmup_steps lr_scheduler.total_steps "
    "lr_scheduler.decay_ratio lr_scheduler.decay_type "
    "lr_scheduler.min_lr_factor training.dataset training.dataset_path "
    "training.local_batch_size training.global_batch_size training.seq_len "
    "training.max_norm training.steps training.enable_cpu_offload "
    "training.dtype training.mixed_precision_param "
    "training.mixed_precision_reduce training.gc_freq training.gc_debug "
    "training.dataloader.num_workers training.dataloader.persistent_workers "
    "training.dataloader.pin_memory training.dataloader.prefetch_factor "
    "parallelism.data_parallel_replicate_degree "
    "parallelism.data_parallel_shard_degree "
    "parallelism.fsdp_reshard_after_forward "
    "parallelism.tensor_parallel_degree parallelism.disable_loss_parallel "
    "parallelism.enable_async_tensor_parallel "
    "parallelism.pipeline_parallel_degree "
    "parallelism.module_fqns_per_model_part "
    "parallelism.pipeline_parallel_first_stage_less_layers "
    "parallelism.pipeline_parallel_last_stage_less_layers "
    "parallelism.pipeline_parallel_layers_per_stage "
    "parallelism.pipeline_parallel_schedule "
    "parallelism.pipeline_parallel_schedule_csv "
    "parallelism.pipeline_parallel_microbatch_size "
    "parallelism.pipeline_parallel_expert_parallel_overlap "
    "parallelism.context_parallel_degree "
    "parallelism.context_parallel_load_balancer "
    "parallelism.context_parallel_rotate_method "
    "parallelism.expert_parallel_degree "
    "parallelism.expert_tensor_parallel_degree "
    "parallelism.expert_parallel_comm_backend checkpoint.enable "
    "checkpoint.enable_ft_dataloader_checkpoints checkpoint.folder "
    "checkpoint.interval checkpoint.initial_load_path "
    "checkpoint.initial_load_model_only checkpoint.initial_load_in_hf "
    "checkpoint.initial_load_in_hf_quantized checkpoint.last_save_model_only "
    "checkpoint.last_save_in_hf checkpoint.export_dtype checkpoint.async_mode "
    "checkpoint.keep_latest_k checkpoint.load_step "
    "checkpoint.exclude_from_loading checkpoint.enable_first_step_checkpoint "
    "checkpoint.create_seed_checkpoint checkpoint.load_only "
    "activation_checkpoint.mode activation_checkpoint.selective_ac_option "
    "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns "
    "activation_checkpoint.early_stop activation_checkpoint.memory_budget "
    "activation_checkpoint.visualize_memory_budget_pareto "
    "activation_checkpoint.preserve_rng_state "
    "activation_checkpoint.determinism_check activation_checkpoint.debug "
    "compile.enable compile.components compile.backend "
    "quantize.linear.float8.enable_fsdp_float8_all_gather "
    "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp "
    "quantize.linear.float8.recipe_name quantize.linear.float8.filter_fqns "
    "quantize.linear.float8.emulate "
    "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice "
    "quantize.linear.mx.recipe_name quantize.linear.mx.filter_fqns "
    "quantize.grouped_mm.float8.fqns quantize.grouped_mm.mx.recipe_name "
    "quantize.grouped_mm.mx.fqns comm.init_timeout_seconds "
    "comm.train_timeout_seconds comm.trace_buf_size comm.save_traces_folder "
    "comm.save_traces_file_prefix comm.mode memory_estimation.enable "
    "memory_estimation.disable_fake_mode fault_tolerance.enable "
    "fault_tolerance.process_group fault_tolerance.process_group_timeout_ms "
    "fault_tolerance.replica_id fault_tolerance.group_size "
    "fault_tolerance.min_replica_size fault_tolerance.semi_sync_method "
    "experimental.custom_import experimental.custom_args_module "
    "validation.enable validation.dataset validation.dataset_path "
    "validation.local_batch_size validation.seq_len validation.freq "
    "validation.steps validation.dataloader.num_workers "
    "validation.dataloader.persistent_workers "
    "validation.dataloader.pin_memory validation.dataloader.prefetch_factor "
    "debug.seed debug.deterministic debug.deterministic_warn_only "
    "debug.moe_force_load_balance ";

bool isKnown(std::string_view name) {
  for (size_t at = names.find(name); at != names.npos;
       at = names.find(name, at + 1))
    if ((at == 0 || names[at - 1] == ' ') && names[at + name.size()] == ' ')
      return true;
  return false;
}

std::string nearestSetting(const std::string &name) {
  std::vector<std::string> all;
  for (size_t begin = 0, end; begin < names.size(); begin = end + 1) {
    end = names.find(' ', begin);
    all.emplace_back(names.substr(begin, end - begin));
  }
  return nearestOf(all, name);
}

/// A flavor of llama3, with the scaling of rotary frequencies that all have.
static EngineModel llama(int64_t embed, int64_t layers, int64_t heads,
                         int64_t keyHeads, int64_t feedForward,
                         int64_t vocabulary = 128256) {
  EngineModel model{.family = "llama",
                    .vocabulary = vocabulary,
                    .embed = embed,
                    .layers = layers,
                    .feedForward = feedForward,
                    .heads = heads,
                    .keyHeads = keyHeads,
                    .headSize = embed / heads,
                    .positions = 131072,
                    .rotaryBase = 500000};
  model.rotaryFactor = 8;
  return model;
}

/// A flavor of qwen3.
static EngineModel qwen(int64_t embed, int64_t layers, int64_t heads,
                        int64_t feedForward, bool tied = false) {
  return {.family = "qwen3",
          .vocabulary = 151936,
          .embed = embed,
          .layers = layers,
          .feedForward = feedForward,
          .heads = heads,
          .keyHeads = 8,
          .headSize = 128,
          .positions = 40960,
          .normEpsilon = 1e-6,
          .rotaryBase = 1e6,
          .tied = tied};
}

/// A flavor of qwen3 with experts.
static EngineModel qwenExperts(int64_t embed, int64_t layers, int64_t heads,
                               int64_t feedForward, int64_t expertFeedForward,
                               double rotaryBase) {
  EngineModel model = qwen(embed, layers, heads, feedForward);
  model.family = "qwen3_moe";
  model.keyHeads = 4;
  model.rotaryBase = rotaryBase;
  model.experts = 128;
  model.choices = 8;
  model.expertFeedForward = expertFeedForward;
  return model;
}

std::span<const Flavor> flavors() {
  static const Flavor list[] = {
      {"llama3", "debugmodel", llama(256, 6, 16, 16, 768, 2048), true},
      {"llama3", "8B", llama(4096, 32, 32, 8, 14336), true},
      {"llama3", "70B", llama(8192, 80, 64, 8, 28672), true},
      {"llama3", "405B", llama(16384, 126, 128, 8, 53248), true},
      {"qwen3", "0.6B", qwen(1024, 28, 16, 3072, true), false},
      {"qwen3", "1.7B", qwen(2048, 28, 16, 6144, true), false},
      {"qwen3", "4B", qwen(2560, 36, 32, 9728, true), false},
      {"qwen3", "8B", qwen(4096, 36, 32, 12288), false},
      {"qwen3", "14B", qwen(5120, 40, 40, 17408), false},
      {"qwen3", "32B", qwen(5120, 64, 64, 25600), false},
      {"qwen3", "30B-A3B", qwenExperts(2048, 48, 32, 6144, 768, 1e6), false},
      {"qwen3", "235B-A22B", qwenExperts(4096, 94, 64, 12288, 1536, 5e6),
       false}};
  return list;
}

std::span<const ScheduleName> scheduleNames() {
  static constexpr ScheduleName list[] = {
      {"GPipe", "gpipe", true, false},
      {"1F1B", "1f1b", true, false},
      {"Interleaved1F1B", "interleaved-1f1b", true, true},
      {"LoopedBFS", "looped-bfs", false, true},
      {"InterleavedZeroBubble", "interleaved-zero-bubble", false, true},
      {"ZBVZeroBubble", "zbv", false, true, true},
      {"DualPipeV", "dualpipev", false, true, true}};
  return list;
}

} // namespace rota::engines::torchtitan
