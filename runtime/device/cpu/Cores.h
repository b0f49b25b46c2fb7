// SPDX-License-Identifier: Apache-2.0
//
// The cores of the machine, shared by the ranks of this process. A rank holds
// one *compute token* (one core) while it runs an action. Helper threads take
// the cores that no rank wants and run pieces of a rank's parallel loops. So
// four ranks on two cores take as long as one rank, and one rank on two cores
// uses both. Waiting threads sleep; none spins.
#ifndef ROTA_RUNTIME_DEVICE_CPU_CORES_H
#define ROTA_RUNTIME_DEVICE_CPU_CORES_H

#include "runtime/device/cpu/Parallel.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace rota {

class Cores {
public:
  /// Starts count - 1 helper threads. `count` must be at least 1.
  explicit Cores(int count);
  ~Cores();
  Cores(const Cores &) = delete;
  Cores &operator=(const Cores &) = delete;

  int count() const { return total; }
  /// Ranks that wait for a core now.
  int waitingRanks() const { return waiting; }

  /// Waits for a core, in the order of asking, and gives it back.
  void acquire();
  void release();

  /// Runs the pieces on the calling thread, which must hold a core, and on
  /// helpers; returns when all are done.
  void run(int64_t pieces, FunctionRef<void(int64_t)> body);

private:
  /// A parallel loop that has pieces left. It lives on its caller's stack.
  struct Loop {
    FunctionRef<void(int64_t)> body;
    int64_t pieces;
    std::atomic<int64_t> next{0};
    int helpers = 0; // threads inside, guarded by the mutex
  };

  /// A rank that waits, on its own stack.
  struct Waiter {
    std::condition_variable ready;
    bool granted = false;
  };

  void help();
  Loop *findLoop();
  /// Hands a core to the rank that has waited longest, or to the helpers. The
  /// caller holds the mutex.
  void giveBack();

  const int total;
  std::mutex mutex;
  std::condition_variable workComes; // for helpers
  std::condition_variable loopLeft;  // for callers whose loop has helpers
  int freeCores;                     // above 0 only when no rank waits
  std::deque<Waiter *> queue;        // ranks that wait for a token
  std::atomic<int> waiting{0};       // their number, for helpers between pieces
  std::vector<Loop *> loops;
  bool stopping = false;
  std::vector<std::thread> helpers;
};

/// Holds a core for a scope.
class ComputeToken {
public:
  explicit ComputeToken(Cores &cores) : cores(cores) { cores.acquire(); }
  ~ComputeToken() { cores.release(); }
  ComputeToken(const ComputeToken &) = delete;
  ComputeToken &operator=(const ComputeToken &) = delete;

private:
  Cores &cores;
};

/// Gives the core that the thread holds back for a scope, while it waits.
class CoreLeave {
public:
  explicit CoreLeave(Cores &cores) : cores(cores) { cores.release(); }
  ~CoreLeave() { cores.acquire(); }
  CoreLeave(const CoreLeave &) = delete;
  CoreLeave &operator=(const CoreLeave &) = delete;

private:
  Cores &cores;
};

/// The last measured time of each loop of a rank: short loops do not wake
/// helpers, which would come too late. A table of fixed size: loops that share
/// a place lose time, never correctness.
class LoopCosts {
public:
  struct Cost {
    RotaCpuKernel kernel = nullptr;
    int64_t rows = 0;
    double seconds = 0.0; // of the whole loop on one thread, roughly
  };
  /// The place of this loop; another loop's cost is forgotten.
  Cost &find(RotaCpuKernel kernel, int64_t rows);

private:
  std::array<Cost, 256> table;
};

/// The number of cores that this process may run on.
int availableCores();
/// The number of cores that the machine has.
int machineCores();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_CORES_H
