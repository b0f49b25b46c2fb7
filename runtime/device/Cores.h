// SPDX-License-Identifier: Apache-2.0
//
// The cores of the machine, shared by the ranks of this process. A rank holds
// one *compute token* (one core) while it runs an action. Helper threads take
// the cores that no rank wants and run pieces of a rank's parallel loops. So
// four ranks on two cores take as long as one rank, and one rank on two cores
// uses both. Waiting threads sleep; none spins.
//
// Each token is bound to a core of its own if ranks outnumber the cores and the
// process may use no others. The operating system would often place the thread
// that gets a token beside another one that computes: all cores are busy until
// the thread that gave the token back sleeps.
#ifndef ROTA_RUNTIME_DEVICE_CORES_H
#define ROTA_RUNTIME_DEVICE_CORES_H

#include "runtime/device/Parallel.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace rota {

class Cores {
public:
  /// Starts count - 1 helper threads. `count` must be at least 1. `bound`: the
  /// number in the operating system of the core that each token is bound to;
  /// empty: of none.
  explicit Cores(int count, std::vector<int> bound = {});
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
    pthread_t thread = pthread_self();
    std::condition_variable ready;
    bool granted = false;
  };

  void help();
  Loop *findLoop();
  /// Takes a free token for the calling thread, if possible one of the core
  /// that the thread runs on. The caller holds the mutex.
  int takeFree();
  /// Hands a token to the rank that has waited longest, or to the helpers. The
  /// caller holds the mutex.
  void giveBack(int token);
  /// Lets a thread run on the token's core alone; on all.
  void bind(pthread_t thread, int token) const;
  void unbind() const;

  const int total;
  const std::vector<int> bound;
  cpu_set_t allowed; // where the process may run
  std::mutex mutex;
  std::condition_variable workComes; // for helpers
  std::condition_variable loopLeft;  // for callers whose loop has helpers
  std::vector<int> freeTokens;       // not empty only when no rank waits
  std::vector<pthread_t> holders;    // threads that hold a token
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
    double seconds = 0.0; // estimate for the whole loop on one thread
  };
  /// The place of this loop; another loop's cost is forgotten.
  Cost &find(RotaCpuKernel kernel, int64_t rows);

private:
  std::array<Cost, 256> table;
};

/// The number of cores that this process may run on.
int availableCores();
/// The cores to bind `count` tokens to that `ranks` threads share; none where
/// the operating system has better places for them.
std::vector<int> coresToBind(int count, int ranks);
/// The number of cores that the machine has.
int machineCores();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CORES_H
