// SPDX-License-Identifier: Apache-2.0
//
// The state of a thread of a rank that runs tasks. A rank has one such thread,
// and a second one for the second halves of pairs.
#ifndef ROTA_RUNTIME_TRAIN_RANK_TASKCONTEXT_H
#define ROTA_RUNTIME_TRAIN_RANK_TASKCONTEXT_H

#include "runtime/device/Context.h"
#include "runtime/train/rank/TransferTimes.h"

#include <exception>
#include <map>

namespace rota {

class Rank;

/// A context, and the collectives that tasks with it call. Their stream is
/// theirs alone, so that its order is the same on all ranks, however the halves
/// of a pair interleave.
class TaskContext : public TaskCollectives {
public:
  /// Refers to the rank.
  TaskContext(Rank &rank, Stream stream) : rank(rank), stream(stream) {
    own.collectives = this;
  }

  Rank &owner() { return rank; }
  RotaContext *context() { return &own; }
  const RotaContext *context() const { return &own; }
  /// Exposed seconds of collectives so far (exposedSeconds). Those of a
  /// device that works on its own are not known and not in it.
  double waitedSeconds() const { return seconds; }
  /// Throws what ended a collective, if anything did: the failure of another
  /// rank.
  void rethrowFailure() const {
    if (failure)
      std::rethrow_exception(failure);
  }

  int64_t startInTask(int collective, const void *source,
                      void *destination) override;
  int64_t startRowExchange(int collective, const RotaRowExchange &form,
                           const void *source, const int32_t *sent,
                           const int32_t *received, void *destination) override;
  void waitInTask(int64_t started) override;

private:
  template <typename F> void unlessFailed(F body);
  std::vector<Request> takeRequests(int64_t started);

  Rank &rank;
  Stream stream;
  RotaContext own;
  // The open exchanges of rows, by their numbers, which are negative.
  std::map<int64_t, std::vector<Request>> exchanges;
  int64_t lastExchange = 0;
  std::exception_ptr failure;
  double seconds = 0.0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_TASKCONTEXT_H
