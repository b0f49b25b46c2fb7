// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a program that run in this process: a thread for each, which
// share its cores, or those of their memory node. They are all ranks of the
// mesh, or one under MPI.
#ifndef ROTA_RUNTIME_TRAIN_RANK_PROCESSRANKS_H
#define ROTA_RUNTIME_TRAIN_RANK_PROCESSRANKS_H

#include "runtime/device/MemoryNodes.h"
#include "runtime/device/services/MakeDevice.h"
#include "runtime/train/rank/Rank.h"

#include <condition_variable>
#include <deque>
#include <functional>

namespace rota {

/// `count` threads that run a function together, once for each call of run().
class Team {
public:
  /// Throws RunError when the system refuses a thread.
  explicit Team(int count);
  ~Team();
  /// Runs body(i) on every thread i and waits for all; then throws the
  /// exception that was thrown first, if any.
  void run(const std::function<void(int)> &body);

private:
  Team() = default;
  void work(int number);

  std::mutex mutex;
  std::condition_variable start, finished;
  const std::function<void(int)> *body = nullptr;
  int64_t generation = 0;
  int running = 0;
  bool stopping = false;
  std::exception_ptr error;
  std::vector<std::thread> threads;
};

class ProcessRanks {
public:
  /// Makes the ranks of this process. `threads` of the options is the number of
  /// compute tokens, too. Throws InputError when the device has not the memory
  /// that they need.
  ProcessRanks(const Executable &executable, Connection &connection,
               const DeviceOptions &options, bool profile);

  int localRanks() const { return static_cast<int>(ranks.size()); }
  /// The i-th rank of this process.
  Rank &rank(int i) { return ranks[i]; }

  /// Runs body(rank) on all ranks' threads at once and waits for them. What one
  /// throws ends the run on all ranks, those of other processes included, and
  /// is thrown again, after reportFlight.
  void run(const std::function<void(Rank &rank)> &body);

private:
  Devices devices;
  const NodePlan plan;
  std::deque<Cores> pools;
  LinkedRanks linked;
  std::deque<Rank> ranks;
  Team team; // last, so that its threads end first
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_PROCESSRANKS_H
