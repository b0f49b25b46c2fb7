// SPDX-License-Identifier: Apache-2.0
//
// The flags that a plan depends on, for import and export alike, and those that
// Rota cannot follow.
#include "tools/planner/engines/Megatron.h"

#include <iterator>

namespace rota::engines::megatron {

static const FlagRow rows[] = {
    {"Ranks", "--tensor-model-parallel-size", &Flags::tensor, 1},
    {"Ranks", "--sequence-parallel", &Flags::sequenceParallel},
    {"Ranks", "--pipeline-model-parallel-size", &Flags::pipeline, 1},
    {"Ranks", "--context-parallel-size", &Flags::context, 1},
    {"Ranks", "--cp-comm-type", &Flags::contextExchange},
    {"Ranks", "--expert-model-parallel-size", &Flags::expert, 1},
    {"Ranks", "--expert-tensor-parallel-size", &Flags::expertTensor, 1},
    {"Ranks", "--use-distributed-optimizer", &Flags::distributedOptimizer},
    {"Ranks", "--use-megatron-fsdp", &Flags::fsdp},
    {"Ranks", "--data-parallel-sharding-strategy", &Flags::fsdpSharding},
    {"Ranks", "--num-distributed-optimizer-instances", &Flags::instances, 1},
    {"Ranks", "--ckpt-format", &Flags::checkpointFormat},
    {"Ranks", "--overlap-grad-reduce", &Flags::overlapsReduce},
    {"Ranks", "--overlap-param-gather", &Flags::overlapsGather},
    {"Ranks", "--tp-comm-overlap", &Flags::tensorOverlap},

    {"Pipeline", "--num-virtual-stages-per-pipeline-rank",
     &Flags::virtualStages, 1},
    {"Pipeline", "--num-layers-per-virtual-pipeline-stage",
     &Flags::layersPerChunk, 1},
    {"Pipeline", "--pipeline-model-parallel-layout", &Flags::layout},
    {"Pipeline", "--account-for-embedding-in-pipeline-split",
     &Flags::countsEmbedding},
    {"Pipeline", "--account-for-loss-in-pipeline-split", &Flags::countsLoss},
    {"Pipeline", "--decoder-first-pipeline-num-layers", &Flags::firstLayers, 0},
    {"Pipeline", "--decoder-last-pipeline-num-layers", &Flags::lastLayers, 0},

    {"Batch", "--micro-batch-size", &Flags::microBatch, 1},
    {"Batch", "--global-batch-size", &Flags::globalBatch, 1},
    {"Batch", "--seq-length", &Flags::sequenceLength, 1},
    {"Batch", "--train-iters", &Flags::steps, 1},

    {"Recomputation", "--recompute-granularity", &Flags::recomputed},
    {"Recomputation", "--recompute-method", &Flags::recomputeMethod},
    {"Recomputation", "--recompute-num-layers", &Flags::recomputedLayers, 1},
    {"Recomputation", "--recompute-modules", &Flags::recomputedModules},
    {"Recomputation", "--recompute-activations", &Flags::recomputesCore},

    {"Model", "--num-layers", &Flags::layers, 1},
    {"Model", "--hidden-size", &Flags::embed, 1},
    {"Model", "--ffn-hidden-size", &Flags::feedForward, 1},
    {"Model", "--num-attention-heads", &Flags::heads, 1},
    {"Model", "--kv-channels", &Flags::headSize, 1},
    {"Model", "--group-query-attention", &Flags::groupsQueries},
    {"Model", "--num-query-groups", &Flags::queryGroups, 1},
    {"Model", "--window-size", &Flags::window},
    {"Model", "--max-position-embeddings", &Flags::positions, 1},
    {"Model", "--position-embedding-type", &Flags::positionKind},
    {"Model", "--use-rotary-position-embeddings", &Flags::usesRotary},
    {"Model", "--rotary-base", &Flags::rotaryBase, 1},
    {"Model", "--rotary-percent", &Flags::rotaryShare, 0},
    {"Model", "--use-rope-scaling", &Flags::scalesRotary},
    {"Model", "--rope-scaling-factor", &Flags::rotaryFactor, 1},
    {"Model", "--normalization", &Flags::norm},
    {"Model", "--norm-epsilon", &Flags::normEpsilon, 0},
    {"Model", "--swiglu", &Flags::isGated},
    {"Model", "--disable-bias-linear", &Flags::hasNoBias},
    {"Model", "--add-qkv-bias", &Flags::biasesQueries},
    {"Model", "--qk-layernorm", &Flags::normsQueries},
    {"Model", "--untie-embeddings-and-output-weights", &Flags::isUntied},
    {"Model", "--vocab-size", &Flags::vocabulary, 1},
    {"Model", "--padded-vocab-size", &Flags::paddedVocabulary, 1},
    {"Model", "--make-vocab-size-divisible-by", &Flags::vocabularyDivisor, 1},
    {"Model", "--no-pad-vocab-size", &Flags::doesNotPad},
    {"Model", "--init-method-std", &Flags::initializerRange, 0},
    {"Model", "--attention-dropout", &Flags::attentionDropout, 0},
    {"Model", "--hidden-dropout", &Flags::hiddenDropout, 0},

    {"Experts", "--num-experts", &Flags::experts, 1},
    {"Experts", "--moe-router-topk", &Flags::choices, 1},
    {"Experts", "--moe-ffn-hidden-size", &Flags::expertFeedForward, 1},
    {"Experts", "--moe-router-pre-softmax", &Flags::choosesAfterSoftmax},
    {"Experts", "--moe-router-load-balancing-type", &Flags::balance},
    {"Experts", "--moe-aux-loss-coeff", &Flags::balanceLoss},
    {"Experts", "--moe-z-loss-coeff", &Flags::routerZLoss, 0},
    {"Experts", "--moe-expert-capacity-factor", &Flags::expertCapacity, 0},
    {"Experts", "--moe-token-dispatcher-type", &Flags::dispatcher},
    {"Experts", "--moe-grouped-gemm", &Flags::groupsProducts},

    {"Types", "--bf16", &Flags::isBf16},
    {"Types", "--fp16", &Flags::isFp16},
    {"Types", "--accumulate-allreduce-grads-in-fp32", &Flags::addsInF32},
    {"Types", "--grad-reduce-in-bf16", &Flags::reducesInBf16},
    {"Types", "--use-precision-aware-optimizer", &Flags::choosesStateTypes},
    {"Types", "--exp-avg-dtype", &Flags::firstMoment},
    {"Types", "--exp-avg-sq-dtype", &Flags::secondMoment},

    {"Optimizer", "--optimizer", &Flags::optimizer},
    {"Optimizer", "--lr", &Flags::rate, 0},
    {"Optimizer", "--min-lr", &Flags::leastRate, 0},
    {"Optimizer", "--lr-decay-style", &Flags::rateSchedule},
    {"Optimizer", "--lr-warmup-iters", &Flags::warmup, 0},
    {"Optimizer", "--lr-decay-iters", &Flags::decaySteps, 1},
    {"Optimizer", "--lr-wsd-decay-style", &Flags::decayForm},
    {"Optimizer", "--lr-wsd-decay-iters", &Flags::lastDecay, 0},
    {"Optimizer", "--weight-decay", &Flags::weightDecay, 0},
    {"Optimizer", "--adam-beta1", &Flags::beta1, 0},
    {"Optimizer", "--adam-beta2", &Flags::beta2, 0},
    {"Optimizer", "--adam-eps", &Flags::epsilon, 0},
    {"Optimizer", "--sgd-momentum", &Flags::sgdMomentum, 0},
    {"Optimizer", "--muon-momentum", &Flags::muonMomentum, 0},
    {"Optimizer", "--muon-nesterov", &Flags::isNesterov},
    {"Optimizer", "--clip-grad", &Flags::clip, 0},
};

std::span<const FlagRow> table() { return rows; }

namespace {

/// A flag that changes what is trained or how ranks divide it, and the value
/// with which it does not.
struct RefusedFlag {
  const char *flag, *reason, *neutral = "";
};

} // namespace

static constexpr RefusedFlag ofModel[] = {
    {"--multi-latent-attention", "latent attention; 'model' names a "
                                 "configuration of 'deepseek_v3'"},
    {"--experimental-attention-variant", "another attention"},
    {"--hybrid-layer-pattern", "layers of several kinds"},
    {"--hybrid-override-pattern", "layers of several kinds"},
    {"--heterogeneous-layers-config-path", "layers of several kinds"},
    {"--heterogeneous-layers-config-encoded-json", "layers of several kinds"},
    {"--moe-layer-freq", "layers of several kinds", "1"},
    {"--moe-shared-expert-intermediate-size", "shared experts"},
    {"--moe-router-num-groups", "groups of experts; 'model' names a "
                                "configuration of 'deepseek_v3'"},
    {"--moe-router-score-function",
     "another score of experts; 'model' names a configuration", "softmax"},
    {"--moe-latent-size", "experts of a latent size"},
    {"--mtp-num-layers",
     "multi-token prediction; 'model' names a configuration of 'deepseek_v3'",
     "0"},
    {"--squared-relu", "another activation"},
    {"--quick-geglu", "another activation"},
    {"--window-attn-skip-freq", "windows in some of the layers"},
    {"--no-rope-freq", "rotary embedding in some of the layers"},
    {"--rotary-seq-len-interpolation-factor", "another rotary embedding"},
    {"--rotary-interleaved", "another rotary embedding"},
    {"--apply-layernorm-1p", "another norm"},
    {"--apply-residual-connection-post-layernorm", "another residual"},
    {"--encoder-num-layers", "an encoder"},
    {"--decoder-num-layers", "an encoder beside the decoder"},
    {"--spec", "a model of one's own"}};

static constexpr RefusedFlag ofRun[] = {
    {"--use-mup", "another scale of weights"},
    {"--yaml-cfg", "a configuration in a file"},
    {"--use-torch-fsdp2", "PyTorch's FSDP, with settings of its own; "
                          "--use-megatron-fsdp is read"},
    {"--tensor-parallel-num-weight-shards",
     "weights that a tensor-parallel group shares", "1"},
    {"--hierarchical-context-parallel-sizes",
     "an exchange of two levels along the context"},
    {"--hybrid-context-parallel", "parts of sequences of several sizes"},
    {"--optimizer-cpu-offload", "an optimizer on the host"},
    {"--cpu-offloading-num-layers", "activations of some layers on the host",
     "0"},
    {"--fine-grained-activation-offloading",
     "activations on the host, which 'remat' offloads by names"},
    {"--step-batch-size-schedule", "a batch size that grows"},
    {"--microbatch-group-size-per-virtual-pipeline-stage",
     "another order of the interleaved schedule, which 'schedule' reads from a "
     "file"},
    {"--perform-rl-step", "reinforcement learning"},
};

const char *otherwiseIn(std::string_view flag) {
  for (auto [name, reason] :
       {std::pair("--fp8-format", "products are planned in bf16"),
        {"--fp4-format", "products are planned in bf16"},
        {"--rampup-batch-size", "the whole batch is planned"}})
    if (flag == name)
      return reason;
  return nullptr;
}

const char *whyRefused(std::string_view flag, std::string_view value,
                       bool hasModel) {
  auto find = [&](const auto &rows) -> const char * {
    for (const RefusedFlag &row : rows)
      if (flag == row.flag && (value.empty() || value != row.neutral))
        return row.reason;
    return nullptr;
  };
  const char *reason = hasModel ? nullptr : find(ofModel);
  return reason ? reason : find(ofRun);
}

} // namespace rota::engines::megatron
