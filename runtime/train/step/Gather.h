// SPDX-License-Identifier: Apache-2.0
//
// Numbers and text from all ranks. Every rank of the group calls each function,
// in the same order, and not while its timeline runs.
#ifndef ROTA_RUNTIME_TRAIN_STEP_GATHER_H
#define ROTA_RUNTIME_TRAIN_STEP_GATHER_H

#include "runtime/train/rank/Rank.h"

#include <algorithm>
#include <string>
#include <vector>

namespace rota {

/// The `own` of each rank of the group, all of one length, one after the other,
/// on every rank.
std::vector<double> gatherNumbers(Rank &rank, const RankGroup &group,
                                  const std::vector<double> &own);

/// gatherNumbers for all ranks, in two steps: a rank starts it and waits for
/// the numbers of the others when it needs them.
class NumberGather {
public:
  explicit NumberGather(Rank &rank);

  bool isOpen() const { return open; }
  void start(std::vector<double> own);
  /// Once after each start.
  std::vector<double> finish();

private:
  struct Numbers {
    std::vector<double> own, all;
  };
  Rank &rank;
  const std::shared_ptr<Numbers> numbers; // the rank keeps them
  Request request = 0;
  bool open = false;
};

/// Waits for all ranks. When the last one came, on the clock of `rank.host()`:
/// one point in time for the ranks of a process.
double meetingTime(Rank &rank);

/// The `own` of every rank, on rank 0; nothing on the others.
std::vector<std::string> gatherTexts(Rank &rank, const std::string &own);

/// The text of rank 0, on every rank.
std::string textOfRankZero(Rank &rank, const std::string &own);

/// Calls body(begin, bytes) for pieces of a message that every communicator
/// takes.
template <typename F> void forEachPiece(int64_t bytes, F body) {
  constexpr int64_t kPiece = 1 << 20;
  for (int64_t at = 0; at < bytes; at += kPiece)
    body(at, std::min(kPiece, bytes - at));
}

/// One half of a message of any length between two hosts: `data` of rank `from`
/// comes to that of rank `to`.
void sendBytes(Rank &rank, int to, const char *data, int64_t bytes);
void receiveBytes(Rank &rank, int from, char *data, int64_t bytes);

/// For each of `own`, as many on each rank, whether it is true on one rank or
/// more; on every rank.
std::vector<bool> decideTogether(Rank &rank, const std::vector<bool> &own);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_GATHER_H
