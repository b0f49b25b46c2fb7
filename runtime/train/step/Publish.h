// SPDX-License-Identifier: Apache-2.0
//
// Copies the master parameters to where tasks read them, on this rank and on
// others; after initialization and after each update.
#ifndef ROTA_RUNTIME_TRAIN_STEP_PUBLISH_H
#define ROTA_RUNTIME_TRAIN_STEP_PUBLISH_H

#include "runtime/train/rank/Rank.h"

namespace rota {

class Publisher {
public:
  /// `isInStep`: what it waits for counts as a wait of a step.
  explicit Publisher(Rank &rank, bool isInStep = false)
      : rank(rank), isInStep(isInStep) {}

  /// Starts publishing one tensor of this rank's stage: its master is rounded
  /// to `updated`, unless the update task did that, and gathered into `stored`.
  /// The caller holds a core.
  void start(const Update &update, bool isRounded);

  /// Waits for all tensors, then refreshes copies: of this rank's tensors on
  /// other stages, and of other stages' tensors here. Every rank calls.
  void finish();

  /// The same, but does not wait for other stages. `sent`: they still read this
  /// rank's tensors. `written`: copies here that are not there yet.
  struct OpenCopies {
    std::vector<Request> sent, written;
  };
  OpenCopies startCopies();

private:
  void exchange(bool sends, OpenCopies &open);
  void wait(Request request);

  Rank &rank;
  const bool isInStep;
  std::vector<Request> requests;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_PUBLISH_H
