// SPDX-License-Identifier: Apache-2.0
//
// The cores of the machine, shared by the ranks of this process. A rank holds
// one *compute token* (one core) while it runs actions, until it has to wait or
// another rank waits for the core. Helper threads take the cores that no rank
// wants and run pieces of a rank's parallel loops. So four ranks on two cores
// take as long as one rank, and one rank on two cores uses both. Threads
// that wait sleep. Only a loop's caller, for the last pieces, and a helper, for
// the next loop, look for some microseconds before.
//
// One mutex guards tokens and loops. A rank takes it at most twice for an
// action and twice for a loop. A helper takes it only where a rank or another
// loop waits for its core: after a loop it puts itself on a list without a
// lock, and the next thread that has the mutex collects it. The thread of a
// loop wakes a few helpers, and each of them wakes a few more.
//
// Each token is bound to a core of its own if ranks outnumber the cores and the
// process may use no others. The operating system would often place the thread
// that gets a token beside another one that computes: all cores are busy until
// the thread that gave the token back sleeps. Elsewhere, ranks find cores by
// themselves, and a helper is bound to the core of the rank that waits. Where
// none waits, it runs on any core but that of the loop's caller: a system that
// does not look for an idle core wakes it where it ran before, beside the
// caller for seconds.
#ifndef ROTA_RUNTIME_DEVICE_CORES_H
#define ROTA_RUNTIME_DEVICE_CORES_H

#include "runtime/device/AvailableCores.h"
#include "runtime/device/Parallel.h"
#include "runtime/threads/Turn.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

namespace rota {

class Cores {
public:
  /// Starts count - 1 helper threads, which run where the calling thread may.
  /// Throws RunError when the system refuses one. `count` must be at least 1.
  /// `bound`: the number in the operating system of the core that each token is
  /// bound to; empty: of none.
  explicit Cores(int count, std::vector<int> bound = {});
  ~Cores();
  Cores(const Cores &) = delete;
  Cores &operator=(const Cores &) = delete;

  int count() const { return total; }
  /// Ranks that wait for a core now.
  int waitingRanks() const { return waiting; }
  /// How often the mutex was taken, not counting threads that wake up with it.
  int64_t timesLocked() const { return locked; }

  /// Waits for a core, in the order of asking, and gives it back.
  void acquire();
  void release();

  /// A rank's thread that may ask for a core.
  struct Waiter {
    const pthread_t thread = pthread_self();
    Semaphore *wake = nullptr; // given when it gets the core
    bool granted = false;
  };
  /// Asks for a core for the thread, on any thread.
  void ask(Waiter &waiter);
  bool isGranted(const Waiter &waiter);
  /// Does not ask any more. The waiter may have got a core before.
  void withdraw(Waiter &waiter);

  /// Runs the pieces on the calling thread, which must hold a core, and on at
  /// most `mostHelpers` helpers; returns when all are done. The result is the
  /// time of all of these threads together, in seconds.
  double run(int64_t pieces, FunctionRef<void(int64_t)> body,
             int64_t mostHelpers = INT64_MAX);

private:
  struct WithoutHelpers {};
  Cores(int count, std::vector<int> bound, WithoutHelpers);

  /// Bytes that a core keeps or loses together: what many threads write is as
  /// far as this from what others read.
  static constexpr size_t kCacheLine = 64;

  struct Helper;

  /// Cores that a thread may run on, of those that the process may use.
  struct CoreSet {
    int core = -1;           // -1: all
    bool isExcluded = false; // all but this core
    bool operator==(const CoreSet &) const = default;
  };

  /// A parallel loop. It lives on its caller's stack until nobody is inside.
  struct Loop {
    FunctionRef<void(int64_t)> body;
    int64_t pieces;
    int64_t mostHelpers;
    std::vector<Helper *> crew = {}; // whom run() invites; constant afterwards
    std::vector<Helper *> late = {}; // invited later, guarded by the mutex
    Semaphore left = {};             // given when nobody is inside
    alignas(kCacheLine) std::atomic<int64_t> next{0};
    // The caller, and helpers that are invited or work.
    alignas(kCacheLine) std::atomic<int64_t> inside{1};
    std::atomic<int64_t> unstarted{0};   // invited helpers that do not run yet
    std::atomic<int64_t> nanoseconds{0}; // of threads that have left
  };

  /// A helper thread. With an invitation it gets a token.
  struct alignas(kCacheLine) Helper {
    std::atomic<Loop *> invitation{nullptr}; // taken by the helper, or back
    size_t place = 0; // in the loop's crew, at the end for a late helper
    int token = 0;    // that it holds, if any
    CoreSet runsOn;
    Helper *next = nullptr; // in the list of returned helpers
    Semaphore wake;
    std::thread thread;
  };

  std::unique_lock<std::mutex> lock();
  void help(Helper &self);
  /// Works on the loop. Whether a rank has asked for the helper's core.
  bool join(Helper &self, Loop &loop);
  /// Wakes a few of the crew: those of the caller, or of the helper at a place.
  static void wakeFrom(const Loop &loop, size_t first);
  template <typename F> static void work(Loop &loop, F isWanted);
  static void leave(Loop &loop);
  /// Whether the helper that asks is to give its core to a rank that waits.
  bool isCalled();
  // The caller of these holds the mutex.
  /// Takes back at most so many invitations that no helper has taken yet.
  void cancel(Loop &loop, int64_t most);
  /// Collects what returned helpers hold and gives free tokens to ranks that
  /// wait, the longest first.
  void settle();
  /// Invites helpers to loops with pieces left, as long as there are tokens.
  void lend();
  /// Adds helpers that get tokens to a list, and then invites them. The result
  /// is the place of the first.
  size_t invite(Loop &loop, std::vector<Helper *> &list);
  /// The calling thread gives the token back on the core that it runs on, which
  /// no other token has.
  void noteCore(int token);
  /// Takes a free token, if possible one of the core that the calling thread
  /// runs on.
  int takeFree();
  void grant(Waiter &waiter, int token);

  /// Where a helper that has its token runs. `caller`: the core of the loop's
  /// caller; -1: not known.
  CoreSet coresFor(const Helper &helper, int caller) const;
  /// Lets a thread run on these cores alone.
  void bind(pthread_t thread, const CoreSet &cores) const;

  const int total;
  const bool bindsRanks;
  const cpu_set_t allowed; // where the process may run
  std::vector<Helper> helpers;
  std::atomic<bool> stopping{false};

  alignas(kCacheLine) std::mutex mutex;
  std::vector<int> freeTokens; // not empty only when no rank waits
  // The core of each token: that which it is bound to, else that on which a
  // rank has given it back. -1: not known.
  std::vector<int> coreOf;
  std::vector<pthread_t> holders; // ranks that hold a token
  std::deque<Waiter *> queue;     // ranks that wait for a token
  std::vector<Loop *> loops;      // whose callers look for pieces
  std::vector<Helper *> idle;     // helpers without a token
  std::atomic<int64_t> locked{0};

  // Helpers read these between pieces and after a loop.
  alignas(kCacheLine) std::atomic<int> waiting{0}; // length of the queue
  std::atomic<int> called{0};    // helpers that these ranks wait for
  std::atomic<int> openLoops{0}; // loops that somebody is inside
  alignas(kCacheLine) std::atomic<Helper *> returned{nullptr};
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

/// A core for the thread that made this.
class CoreTurn : public Turn {
public:
  explicit CoreTurn(Cores &cores) : cores(cores) {}
  CoreTurn(const CoreTurn &) = delete;
  CoreTurn &operator=(const CoreTurn &) = delete;

  void ask(Semaphore &wake) override {
    waiter.wake = &wake;
    cores.ask(waiter);
  }
  bool hasCome() override { return cores.isGranted(waiter); }
  void withdraw() override { cores.withdraw(waiter); }
  /// Gives the core back, if the thread has it; to be called before it waits.
  void release() {
    if (waiter.granted)
      cores.release();
    waiter.granted = false;
  }

protected:
  Cores &cores;
  Cores::Waiter waiter; // granted while the thread holds the core
};

/// A core that a rank keeps from one action to the next, so that what it starts
/// in between does not wait for a thread that gets the core.
class KeptCore : public CoreTurn {
public:
  using CoreTurn::CoreTurn;
  ~KeptCore() { release(); }

  /// The thread holds a core afterwards; ranks that wait come first.
  void take() {
    if (cores.waitingRanks() > 0)
      release();
    if (!waiter.granted)
      cores.acquire();
    waiter.granted = true;
  }
};

/// Gives the core that the thread holds back for a scope, while it waits.
class CoreLeave : public CoreTurn {
public:
  explicit CoreLeave(Cores &cores) : CoreTurn(cores) { cores.release(); }
  ~CoreLeave() {
    if (!waiter.granted)
      cores.acquire();
  }
};

/// The last measured time of each loop of a rank: short loops do not wake
/// helpers, which would come too late. A table of fixed size: loops that share
/// a place lose time, never correctness.
class LoopCosts {
public:
  struct Cost {
    RotaCpuKernel kernel = nullptr;
    int64_t rows = 0;
    double seconds = 0.0; // of the whole loop on one thread
  };
  /// The place of this loop; another loop's cost is forgotten.
  Cost &find(RotaCpuKernel kernel, int64_t rows);

private:
  std::array<Cost, 256> table;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CORES_H
