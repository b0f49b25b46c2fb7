// SPDX-License-Identifier: Apache-2.0
//
// The facts of a run that its checkpoints keep and that a run which goes on
// from one compares: the keys of Manifest::identity.
#ifndef ROTA_RUNTIME_PROGRAM_IDENTITYKEYS_H
#define ROTA_RUNTIME_PROGRAM_IDENTITYKEYS_H

#include "runtime/program/AdapterNames.h"

namespace rota::identity {

// Facts that the runtime finds.
inline constexpr const char *kBatchSize = "batch-size", *kData = "data",
                            *kDtype = "dtype",
                            *kGradientDtype = "gradient-dtype",
                            *kLossTerms = "loss-terms", *kModel = "model",
                            *kOptimizer = "optimizer", *kSeed = "seed",
                            *kSequenceLength = "sequence-length",
                            *kSkipSpikes = "skip-spikes", *kSteps = "steps",
                            *kTokenizer = "tokenizer";
// Options of the compiler, in Program::modelOptions.
inline constexpr const char *kDocumentMask = "document-mask",
                            *kExpertCapacity = "expert-capacity",
                            *kLoadBalanceOver = "load-balance-over",
                            *kRouterBiasRate = "router-bias-rate";

/// All of them. A run has those alone that apply to it.
inline constexpr const char *kKeys[] = {
    kBatchSize,       kData,           kDocumentMask,
    kDtype,           kExpertCapacity, kGradientDtype,
    kLoadBalanceOver, kLoraAlpha,      kLoraRank,
    kLoraTargets,     kLossTerms,      kModel,
    kOptimizer,       kRouterBiasRate, kSeed,
    kSequenceLength,  kSkipSpikes,     kSteps,
    kTokenizer};

} // namespace rota::identity

#endif // ROTA_RUNTIME_PROGRAM_IDENTITYKEYS_H
