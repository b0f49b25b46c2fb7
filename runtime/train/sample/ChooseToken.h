// SPDX-License-Identifier: Apache-2.0
//
// The choice of the next token.
#ifndef ROTA_RUNTIME_TRAIN_SAMPLE_CHOOSETOKEN_H
#define ROTA_RUNTIME_TRAIN_SAMPLE_CHOOSETOKEN_H

#include "runtime/train/options/SampleOptions.h"

#include <span>

namespace rota {

/// The token of these logits. At temperature 0 the one with the largest, the
/// first of equal ones. Else `uniform`, in (0, 1), draws from the softmax of
/// logits / temperature, cut to the shortest list of most likely tokens whose
/// probabilities reach `topP`, in f64. Throws RunError where a logit is not
/// finite.
int64_t chooseToken(std::span<const float> logits, const SampleOptions &options,
                    double uniform);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_SAMPLE_CHOOSETOKEN_H
