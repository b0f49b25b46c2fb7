// SPDX-License-Identifier: Apache-2.0
//
// The facts that a run's losses and weights depend on beside the train state: a
// checkpoint keeps it, and a run that goes on from there compares it.
#ifndef ROTA_RUNTIME_TRAIN_STATE_IDENTITY_H
#define ROTA_RUNTIME_TRAIN_STATE_IDENTITY_H

#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/program/Program.h"
#include "runtime/train/options/TrainerOptions.h"

#include <map>
#include <set>
#include <string>

namespace rota {

/// Manifest::identity.
using Identity = std::map<std::string, std::string>;

/// The identity of this run: text by subject ("model", "optimizer", "data",
/// ...). Neither mesh nor schedule nor microbatches are in it, since the bits
/// do not depend on them. Reads the sizes of the data files.
Identity runIdentity(const Program &program, const Options &options);

/// Throws InputError that names the first of `keys` whose value is another in
/// the checkpoint than in `identity`, both values (of a list of settings those
/// that differ) and the flag that accepts them. Accepted keys may differ.
void compareIdentity(const Checkpoint &checkpoint,
                     const std::set<std::string> &keys,
                     const Identity &identity,
                     const std::vector<std::string> &accepted);

/// `compareIdentity` for the facts that the options say without a program: a
/// run that they refuse need not be compiled.
void checkOptionIdentity(const Checkpoint &checkpoint, const Options &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_IDENTITY_H
