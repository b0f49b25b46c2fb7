// SPDX-License-Identifier: Apache-2.0
//
// The weights of commands that do not train.
#ifndef ROTA_RUNTIME_TRAIN_STATE_GIVENWEIGHTS_H
#define ROTA_RUNTIME_TRAIN_STATE_GIVENWEIGHTS_H

#include "runtime/train/Train.h"

#include <optional>

namespace rota {

struct GivenWeights {
  std::optional<int64_t> step; // of the checkpoint that they are of, if any
  std::string source;          // for people
};

/// Throws InputError where the options name neither weights nor a checkpoint.
void requireWeights(const Run &run);

/// Reads them. Every rank calls.
GivenWeights readGivenWeights(Rank &rank, const Run &run);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_GIVENWEIGHTS_H
