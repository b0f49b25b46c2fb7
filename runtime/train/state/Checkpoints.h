// SPDX-License-Identifier: Apache-2.0
//
// Writes checkpoints beside the training. A rank's training waits only while
// its pieces of the state are copied to host memory:
//
//   rank's thread   | step | copy | step | step | step        | step
//   beside it              | write, hash, sync  |
//   rank 0 beside it       | write, hash, sync  | manifest, rename, remove old
//
// Rank 0's thread learns from the checkpoint's folder that all ranks have
// written, so nothing that the ranks do meanwhile delays the checkpoint. After
// each second step they tell each other how far they are, for the line that
// names the checkpoint and for failures.
#ifndef ROTA_RUNTIME_TRAIN_STATE_CHECKPOINTS_H
#define ROTA_RUNTIME_TRAIN_STATE_CHECKPOINTS_H

#include "runtime/checkpoint/RankFile.h"
#include "runtime/train/report/Report.h"
#include "runtime/train/state/BackgroundTask.h"
#include "runtime/train/state/Identity.h"
#include "runtime/train/step/Gather.h"

#include <chrono>

namespace rota {

/// The checkpoints of one rank. All ranks call `start`, `advance` and `finish`
/// in the same order. Each throws RunError on all ranks when one rank cannot
/// write; the unfinished checkpoint is removed then.
class Checkpoints {
public:
  /// Makes the memory of the copy, if the options ask for checkpoints.
  Checkpoints(Rank &rank, const Options &options, const Identity &identity,
              Report &report);

  bool isOn() const { return !options.checkpoints.folder.empty(); }
  /// Whether step `t` is followed by a checkpoint, whatever happens.
  bool isDue(int64_t t) const;
  /// Whether this rank asks for a checkpoint now, because of a signal or the
  /// time: ranks may differ.
  bool asks() const;

  /// Copies the state, after the work of the step that `run` names, and starts
  /// writing it. The checkpoint before is finished first. Returns the seconds
  /// that this took.
  double start(const RunState &run);
  /// Goes on with the pending checkpoint, if there is one, without waiting for
  /// other ranks: it asks how far they are, and the next call has the answer.
  void advance();
  /// Waits until no checkpoint is pending.
  void finish();

private:
  void copyState();
  std::string partial() const;
  void commit(const std::atomic<bool> &isCancelled) const;
  Manifest manifest(const std::map<int, StateCopy> &writers) const;
  [[noreturn]] void fail();

  Rank &rank;
  const Options &options;
  const Identity &identity;
  Report &report; // names each checkpoint that is whole
  std::vector<StateTensor> tensors;
  StateCopy copy;
  std::unique_ptr<Arena> memory; // holds the copy
  NumberGather statuses;         // statuses of all ranks' tasks
  bool isPending = false;
  RunState pending; // of the checkpoint that is written last
  std::chrono::steady_clock::time_point lastStart;
  BackgroundTask task{"writing a checkpoint"}; // last, so that it ends first
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_CHECKPOINTS_H
