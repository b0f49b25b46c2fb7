// SPDX-License-Identifier: Apache-2.0
//
// The contents of the arenas before the first step: parameters, optimizer
// states and constants.
#ifndef ROTA_RUNTIME_TRAIN_STATE_INITIALIZE_H
#define ROTA_RUNTIME_TRAIN_STATE_INITIALIZE_H

#include "runtime/checkpoint/Weights.h"
#include "runtime/train/rank/Rank.h"

namespace rota {

/// Gives the optimizer's states their first values, in a new arena.
void initializeStates(Rank &rank);

/// Fills the rank's part of the master copy of every parameter of its stage:
/// from `weights` when given, else from its initializer with the stream
/// RandomStream(seed, parameter name, layer + 1) of runtime/random/Philox.h,
/// indexed by the element's number in the whole tensor.
void initializeMasters(Rank &rank, uint64_t seed, const Weights *weights);

/// The source of these, for people: "75 tensors of 'FOLDER'", or "random, seed
/// 1".
std::string describeWeights(uint64_t seed, const Weights *weights);

/// Refreshes all copies of the masters and fills the rotary tables, shard
/// offsets and constant tensors. Every rank calls.
void completeInitialization(Rank &rank);

/// All three, in this order. Every rank calls.
void initialize(Rank &rank, uint64_t seed, const Weights *weights);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_INITIALIZE_H
