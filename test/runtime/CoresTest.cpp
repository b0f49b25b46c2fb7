// SPDX-License-Identifier: Apache-2.0
//
// Compute tokens and parallel loops.
#include "runtime/device/Context.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

using namespace rota;

namespace {

void mark(void *const *args, int64_t begin, int64_t end) {
  auto *counts = static_cast<std::atomic<int> *>(args[0]);
  auto *grain = static_cast<const int64_t *>(args[1]);
  EXPECT_EQ(begin % *grain, 0);
  for (int64_t i = begin; i < end; ++i)
    ++counts[i];
}

void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

} // namespace

TEST(ParallelFor, DoesEachRowOnceInMultiplesOfTheGrain) {
  for (int threads : {1, 2, 5}) {
    Cores cores(threads);
    RotaContext context;
    context.cores = &cores;
    for (int64_t rows : {0, 1, 7, 64, 1001})
      for (int64_t grain : {1, 3, 64}) {
        ComputeToken token(cores);
        std::vector<std::atomic<int>> counts(rows + 1);
        void *args[] = {counts.data(), &grain};
        rotaLaunch(&context, toKernel(mark), args, rows, grain);
        for (int64_t i = 0; i < rows; ++i)
          ASSERT_EQ(counts[i], 1) << threads << " threads, row " << i;
        ASSERT_EQ(counts[rows], 0);
      }
  }
}

TEST(ParallelFor, ShortLoopsStayOnTheirThread) {
  // The second run of a loop that took a microsecond is not cut.
  static std::atomic<int> calls;
  auto count = [](void *const *, int64_t, int64_t) { ++calls; };
  Cores cores(2);
  RotaContext context;
  context.cores = &cores;
  ComputeToken token(cores);
  int before = 0;
  for (int run = 0; run < 1000 && (run == 0 || calls - before != 1); ++run) {
    before = calls;
    rotaLaunch(&context, toKernel(count), nullptr, 64, 1);
  }
  EXPECT_EQ(calls - before, 1);
}

TEST(ParallelFor, RunsWithoutCores) {
  int64_t grain = 1;
  std::vector<std::atomic<int>> counts(3);
  void *args[] = {counts.data(), &grain};
  rotaLaunch(nullptr, toKernel(mark), args, 3, grain);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 3);
}

TEST(Cores, OneRankOnTwoCoresUsesTwoThreads) {
  Cores cores(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  ComputeToken token(cores);
  cores.run(20, [&](int64_t) {
    wait();
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2u);
}

TEST(Cores, NoMoreThreadsRunThanThereAreCores) {
  // Four ranks on two cores, each with loops that ask for helpers.
  Cores cores(2);
  std::atomic<int> inside{0}, most{0};
  std::atomic<int64_t> pieces{0};
  auto rank = [&] {
    for (int action = 0; action < 10; ++action) {
      ComputeToken token(cores);
      cores.run(5, [&](int64_t) {
        int now = ++inside;
        for (int seen = most;
             seen < now && !most.compare_exchange_weak(seen, now);)
          ;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++pieces;
        --inside;
      });
    }
  };
  std::vector<std::thread> ranks;
  for (int i = 0; i < 4; ++i)
    ranks.emplace_back(rank);
  for (std::thread &thread : ranks)
    thread.join();
  EXPECT_EQ(pieces, 4 * 10 * 5);
  EXPECT_EQ(most, 2);
}

TEST(Cores, TokensAreGivenInTheOrderOfAsking) {
  Cores cores(1);
  std::vector<int> order;
  cores.acquire();
  std::vector<std::thread> ranks;
  for (int i = 0; i < 4; ++i) {
    ranks.emplace_back([&, i] {
      ComputeToken token(cores);
      order.push_back(i); // guarded by the only token
    });
    while (cores.waitingRanks() <= i) // so that it asks before rank i + 1
      wait();
  }
  cores.release();
  for (std::thread &thread : ranks)
    thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

// As for a rank that sleeps until its message has come.
TEST(Cores, AnotherThreadAsksForACore) {
  Cores cores(1);
  cores.acquire();
  std::atomic<CoreTurn *> turn{nullptr};
  Semaphore wake;
  std::thread rank([&] {
    CoreTurn own(cores);
    turn = &own;
    wake.take();
    EXPECT_TRUE(own.hasCome());
    EXPECT_EQ(cores.waitingRanks(), 0);
    cores.release(); // fails where the core is not this thread's
  });
  while (!turn)
    wait();
  turn.load()->ask(wake);
  EXPECT_FALSE(turn.load()->hasCome());
  EXPECT_EQ(cores.waitingRanks(), 1);
  cores.release();
  rank.join();
  ComputeToken token(cores);
}

TEST(Cores, ATurnThatIsWithdrawnDoesNotCome) {
  Cores cores(1);
  cores.acquire();
  CoreTurn turn(cores);
  Semaphore wake;
  turn.ask(wake);
  turn.withdraw();
  EXPECT_EQ(cores.waitingRanks(), 0);
  cores.release();
  EXPECT_FALSE(turn.hasCome());
  ComputeToken token(cores);
}

TEST(Cores, ARankKeepsItsCoreUntilAnotherOneWaits) {
  Cores cores(1);
  KeptCore core(cores);
  core.take();
  int64_t before = cores.timesLocked();
  core.take();
  EXPECT_EQ(cores.timesLocked(), before);
  bool hasRun = false; // guarded by the only token
  std::thread other([&] {
    ComputeToken token(cores);
    hasRun = true;
  });
  while (cores.waitingRanks() == 0)
    wait();
  EXPECT_FALSE(hasRun);
  core.take();
  EXPECT_TRUE(hasRun);
  core.release();
  core.release();
  other.join();
  ComputeToken token(cores);
}

TEST(Cores, ALoopTakesTheMutexTwiceHoweverManyHelpersItHas) {
  for (int count : {2, 8, 64}) {
    Cores cores(count);
    ComputeToken token(cores);
    for (int64_t pieces : {count, 50 * count}) {
      int64_t before = cores.timesLocked();
      std::atomic<int64_t> done{0};
      for (int loop = 0; loop < 50; ++loop)
        cores.run(pieces, [&](int64_t) { ++done; });
      EXPECT_EQ(done, 50 * pieces);
      EXPECT_EQ(cores.timesLocked() - before, 2 * 50) << count << " cores";
    }
  }
}

TEST(Cores, AnActionTakesTheMutexTwiceHoweverManyRanksThereAre) {
  for (int ranks : {1, 64, 128}) {
    Cores cores(64);
    std::vector<std::thread> threads;
    for (int i = 0; i < ranks; ++i)
      threads.emplace_back([&] {
        for (int action = 0; action < 20; ++action)
          ComputeToken token(cores);
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(cores.timesLocked(), 2 * 20 * ranks);
    EXPECT_EQ(cores.waitingRanks(), 0);
  }
}

TEST(Cores, EveryPieceRunsOnceAmongMoreRanksThanCores) {
  // Loops of all lengths, so that helpers come late, are called back by ranks
  // that wait, and pass from one loop to another.
  constexpr int kRanks = 96, kActions = 12;
  for (int count : {2, 7, 64}) {
    Cores cores(count);
    std::atomic<int> inside{0}, tooMany{0}, wrong{0};
    auto rank = [&](int number) {
      for (int action = 0; action < kActions; ++action) {
        ComputeToken token(cores);
        int64_t pieces = (number * kActions + action) % 97;
        std::vector<std::atomic<int>> counts(pieces);
        double seconds = cores.run(pieces, [&](int64_t piece) {
          tooMany += ++inside > count;
          if (piece % 8 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(20));
          ++counts[piece];
          --inside;
        });
        wrong += seconds < 20e-6 * static_cast<double>((pieces + 7) / 8);
        for (std::atomic<int> &times : counts)
          wrong += times != 1;
      }
    };
    std::vector<std::thread> ranks;
    for (int i = 0; i < kRanks; ++i)
      ranks.emplace_back(rank, i);
    for (std::thread &thread : ranks)
      thread.join();
    EXPECT_EQ(tooMany, 0);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Cores, NoMoreHelpersComeThanALoopAsksFor) {
  Cores cores(8);
  ComputeToken token(cores);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  cores.run(
      40,
      [&](int64_t) {
        wait();
        std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      },
      /*mostHelpers=*/2);
  EXPECT_LE(threads.size(), 3u);
}

/// The cores on which the calling thread may run.
static std::vector<int> coresOfThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  return cores;
}

TEST(Cores, TokensAreBoundWhereRanksOutnumberTheCoresOfTheProcess) {
  std::vector<int> all = coresOfThread();
  int count = availableCores();
  EXPECT_EQ(coresToBind(count, count + 1), all);
  EXPECT_TRUE(coresToBind(count, count).empty());
  EXPECT_TRUE(coresToBind(count + 1, count + 2).empty());
  EXPECT_TRUE(coresToBind(count - 1, count).empty());
}

TEST(Cores, HoldersOfTokensRunOnDifferentCores) {
  std::vector<int> all = coresOfThread();
  int count = int(all.size());
  Cores cores(count, all);
  std::vector<std::atomic<int>> users(all.back() + 1);
  std::atomic<int> shared{0}, unbound{0}, confined{0};
  auto rank = [&] {
    for (int action = 0; action < 50; ++action) {
      cores.acquire();
      std::vector<int> own = coresOfThread();
      unbound += own.size() != 1 || sched_getcpu() != own[0];
      shared += ++users[own[0]] != 1;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --users[own[0]];
      cores.release();
      confined += coresOfThread() != all;
    }
  };
  std::vector<std::thread> ranks;
  for (int i = 0; i < 2 * count; ++i)
    ranks.emplace_back(rank);
  for (std::thread &thread : ranks)
    thread.join();
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(unbound, 0);
  EXPECT_EQ(confined, 0);
}

TEST(Cores, HelpersRunOnCoresThatNobodyHolds) {
  std::vector<int> all = coresOfThread();
  Cores cores(int(all.size()), all);
  std::atomic<int> helped{0}, elsewhere{0};
  for (int rank = 0; rank < 10; ++rank) {
    ComputeToken token(cores);
    int own = sched_getcpu();
    auto caller = std::this_thread::get_id();
    cores.run(32, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (std::this_thread::get_id() == caller)
        return;
      ++helped;
      std::vector<int> core = coresOfThread();
      elsewhere +=
          core.size() != 1 || core[0] == own || core[0] != sched_getcpu();
    });
  }
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(helped > 0, all.size() > 1);
}

void runOn(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// The other cores, where there are any.
std::vector<int> withoutCore(std::vector<int> all, int core) {
  if (all.size() > 1)
    std::erase(all, core);
  return all;
}

/// Where the helper of a loop may run, for which the loop waits.
std::vector<int> coresOfHelper(Cores &cores) {
  std::vector<int> ofHelper;
  std::atomic<bool> hasHelped{false};
  auto caller = std::this_thread::get_id();
  cores.run(2, [&](int64_t) {
    if (std::this_thread::get_id() != caller) {
      ofHelper = coresOfThread();
      hasHelped = true;
    }
    for (int wait = 0; wait < 10000 && !hasHelped; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  return ofHelper;
}

TEST(Cores, AHelperRunsWhereARankHasGivenItsCoreBack) {
  std::vector<int> all = coresOfThread();
  Cores cores(2);
  std::thread([&] {
    runOn(all.front());
    ComputeToken token(cores);
    std::thread([&] {
      runOn(all.back());
      ComputeToken waits(cores);
    }).join();
    EXPECT_EQ(coresOfHelper(cores), std::vector<int>{all.back()});
    // The caller has moved there.
    runOn(all.back());
    EXPECT_EQ(coresOfHelper(cores), withoutCore(all, all.back()));
  }).join();
}

TEST(Cores, AHelperOfALoneRankRunsBesideItsCaller) {
  std::vector<int> all = coresOfThread();
  Cores cores(2);
  std::thread([&] {
    ComputeToken token(cores);
    for (int own : {all.front(), all.back()}) {
      runOn(own);
      EXPECT_EQ(coresOfHelper(cores), withoutCore(all, own));
    }
  }).join();
}

TEST(Context, NumbersOutsideTheirBoundsAreAFailure) {
  const int32_t numbers[] = {0, 7, -1, 9};
  RotaContext context;
  rotaCheckIndices(&context, numbers, 2, 0, 8);
  rotaCheckIndices(&context, numbers, 3, INT32_MIN, 8);
  EXPECT_FALSE(context.failed);
  rotaCheckIndices(&context, numbers, 4, INT32_MIN, 8);
  EXPECT_TRUE(context.failed);
  EXPECT_EQ(context.failure,
            "position 3 of the data: expected a number from 0 to 7, got 9");
  RotaContext second;
  rotaCheckIndices(&second, numbers, 4, 0, 8);
  EXPECT_EQ(second.failure,
            "position 2 of the data: expected a number from 0 to 7, got -1");
}

TEST(Context, TheFirstFailureWins) {
  RotaContext context;
  reportFailure(&context, "first");
  reportFailure(&context, "second");
  EXPECT_TRUE(context.failed);
  EXPECT_EQ(context.failure, "first");
}
