// SPDX-License-Identifier: Apache-2.0
//
// The start of a run from a checkpoint.
#ifndef ROTA_RUNTIME_TRAIN_STATE_RESUME_H
#define ROTA_RUNTIME_TRAIN_STATE_RESUME_H

#include "runtime/train/options/ResumeOptions.h"
#include "runtime/train/state/ReadState.h"

#include <functional>
#include <map>
#include <optional>

namespace rota {

/// The checkpoint whose state a run has.
struct ResumedRun {
  std::string folder;
  RunState state;
};

/// The facts that a checkpoint must agree with.
struct ResumeRequest {
  const ResumeOptions &options;
  std::string checkpoints; // the run's own folder of checkpoints, if any
  // The identity of this run; a checkpoint's must be the same, but for accepted
  // keys. Not compared where the optimizer's states are not read.
  std::map<std::string, std::string> identity;
  StateExtent extent = StateExtent::All;
  // Called before anything is read; again, with that of an older checkpoint,
  // where the newest is damaged. May be empty.
  std::function<void(const RunState &)> prepare = {};
};

/// Reads the rank's part of the state from the newest whole checkpoint that the
/// options allow. A damaged one is named on standard error, and the next older
/// one is tried. Nothing is returned, and nothing has been read, when there is
/// none to go on from. All ranks take the same one: rank 0 finds the
/// candidates, and damage that one rank finds counts for all. Every rank calls.
///
/// Throws InputError on a checkpoint of another model or run, on damage of the
/// only checkpoint that the options allow, and when all are damaged.
std::optional<ResumedRun> resume(Rank &rank, const ResumeRequest &request);

/// Throws InputError that names the first key whose values differ, both values
/// and the flag that accepts them.
void checkIdentity(const Checkpoint &checkpoint, const ResumeRequest &request);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_RESUME_H
