// SPDX-License-Identifier: Apache-2.0
//
// What the arenas hold before the first step: parameters and constants.
#ifndef ROTA_RUNTIME_TRAIN_INITIALIZE_H
#define ROTA_RUNTIME_TRAIN_INITIALIZE_H

#include "runtime/checkpoint/Weights.h"
#include "runtime/train/Machine.h"

namespace rota {

/// Fills every parameter: from `weights` when given, else from its initializer
/// with the stream RandomStream(seed, parameter name, layer + 1) of
/// runtime/random/Philox.h. Then refreshes all compute copies and fills the
/// rotary tables.
void initialize(Machine &machine, uint64_t seed, const Weights *weights);

/// Writes the compute copies of one parameter tensor: on its own rank when
/// `own` (the update kernel does that itself for bf16), and on the others.
void refreshCopies(Machine &machine, int rank, const Update &update, bool own);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_INITIALIZE_H
