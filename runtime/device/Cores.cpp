// SPDX-License-Identifier: Apache-2.0
//
// Compute tokens and the helper threads. The order of some steps matters:
// - A helper first puts itself on the list `returned` and then looks whether a
//   rank or another loop waits. These first make themselves known and then
//   collect the list. So one of both sees the other.
// - A helper takes its invitation, or the loop's caller takes it back; both
//   exchange the same pointer, so only one of them has it.
#include "runtime/device/Cores.h"
#include "runtime/threads/StartThread.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace rota {

/// Helpers that each thread of a loop wakes. To wake one costs its waker about
/// as much as a tenth of the time until the other runs.
static constexpr size_t kWakes = 4;

Cores::Cores(int count, std::vector<int> bound, WithoutHelpers)
    : total(count), bindsRanks(!bound.empty()), allowed(allowedCores()),
      helpers(count - 1), freeTokens(count), coreOf(std::move(bound)),
      holders(count) {
  coreOf.resize(count, -1);
  std::iota(freeTokens.rbegin(), freeTokens.rend(), 0);
}

Cores::Cores(int count, std::vector<int> bound)
    : Cores(count, std::move(bound), WithoutHelpers()) {
  int number = 0, all = count - 1;
  for (Helper &helper : helpers) {
    helper.thread = startThread({"parallel loops", ++number, all},
                                [this, &helper] { help(helper); });
    idle.push_back(&helper);
  }
}

Cores::~Cores() {
  stopping = true;
  for (Helper &helper : helpers)
    helper.wake.give();
  for (Helper &helper : helpers)
    if (helper.thread.joinable()) // else the system has refused it
      helper.thread.join();
}

std::unique_lock<std::mutex> Cores::lock() {
  std::unique_lock lock(mutex);
  locked.store(locked.load(std::memory_order_relaxed) + 1,
               std::memory_order_relaxed);
  return lock;
}

void Cores::acquire() {
  Semaphore wake;
  Waiter self{.wake = &wake};
  ask(self);
  wake.take();
}

void Cores::ask(Waiter &waiter) {
  std::unique_lock held = lock();
  settle();
  for (Loop *loop : loops)
    if (freeTokens.empty()) {
      cancel(*loop, 1);
      settle();
    }
  if (!freeTokens.empty()) {
    grant(waiter, takeFree());
    return lend();
  }
  queue.push_back(&waiter);
  ++waiting;
  ++called;
  settle();
}

bool Cores::isGranted(const Waiter &waiter) {
  std::unique_lock held(mutex);
  return waiter.granted;
}

void Cores::withdraw(Waiter &waiter) {
  std::unique_lock held(mutex);
  auto place = std::find(queue.begin(), queue.end(), &waiter);
  if (place == queue.end())
    return;
  queue.erase(place);
  --waiting;
  settle();
}

/// Binds the thread before it wakes: it need not move then.
void Cores::grant(Waiter &waiter, int token) {
  holders[token] = waiter.thread;
  if (bindsRanks)
    bind(waiter.thread, {coreOf[token]});
  waiter.granted = true;
  waiter.wake->give();
}

void Cores::release() {
  {
    std::unique_lock held = lock();
    auto isOwn = [](pthread_t holder) {
      return pthread_equal(holder, pthread_self());
    };
    auto place = std::find_if(holders.begin(), holders.end(), isOwn);
    *place = {};
    auto token = static_cast<int>(place - holders.begin());
    if (!bindsRanks)
      noteCore(token);
    freeTokens.push_back(token);
    settle();
    lend();
  }
  if (bindsRanks)
    bind(pthread_self(), {});
}

void Cores::noteCore(int token) {
  int core = sched_getcpu();
  std::replace(coreOf.begin(), coreOf.end(), core, -1);
  coreOf[token] = core;
}

int Cores::takeFree() {
  int here = sched_getcpu();
  auto isHere = [&](int token) { return coreOf[token] == here; };
  auto place = std::find_if(freeTokens.begin(), freeTokens.end(), isHere);
  if (place == freeTokens.end())
    --place;
  int token = *place;
  freeTokens.erase(place);
  return token;
}

void Cores::settle() {
  if (returned.load())
    for (Helper *helper = returned.exchange(nullptr); helper;
         helper = helper->next) {
      freeTokens.push_back(helper->token);
      idle.push_back(helper);
    }
  while (!queue.empty() && !freeTokens.empty()) {
    Waiter *next = queue.front();
    queue.pop_front();
    --waiting;
    int token = freeTokens.back();
    freeTokens.pop_back();
    grant(*next, token);
  }
  for (int most = waiting, calls = called;
       calls > most && !called.compare_exchange_weak(calls, most);)
    ;
}

bool Cores::isCalled() {
  int calls = called.load();
  while (calls > 0)
    if (called.compare_exchange_weak(calls, calls - 1))
      return true;
  return false;
}

void Cores::lend() {
  for (Loop *loop : loops) {
    if (freeTokens.empty() || idle.empty())
      return;
    for (size_t first = invite(*loop, loop->late); first < loop->late.size();
         ++first)
      loop->late[first]->wake.give();
  }
}

size_t Cores::invite(Loop &loop, std::vector<Helper *> &list) {
  int64_t left = loop.pieces - loop.next.load();
  if (loop.unstarted.load() == 0)
    loop.late.clear(); // all of them have come
  size_t before = list.size();
  // Where the caller runs, if this is its thread and there are other cores.
  bool isCaller = &list == &loop.crew;
  int caller = isCaller && CPU_COUNT(&allowed) > 1 ? sched_getcpu() : -1;
  for (int64_t helpers = loop.inside.load() - 1;
       helpers < std::min(loop.mostHelpers, left) && !freeTokens.empty() &&
       !idle.empty();
       ++helpers) {
    Helper &helper = *idle.back();
    idle.pop_back();
    helper.token = freeTokens.back();
    freeTokens.pop_back();
    list.push_back(&helper);
    helper.place = isCaller ? list.size() - 1 : loop.crew.size();
    // It wakes there, and stays bound for the next loop.
    CoreSet cores = coresFor(helper, caller);
    if (std::exchange(helper.runsOn, cores) != cores)
      bind(helper.thread.native_handle(), cores);
  }
  loop.inside += static_cast<int64_t>(list.size() - before);
  loop.unstarted += static_cast<int64_t>(list.size() - before);
  for (size_t i = before; i < list.size(); ++i)
    list[i]->invitation = &loop;
  return before;
}

Cores::CoreSet Cores::coresFor(const Helper &helper, int caller) const {
  int core = coreOf[helper.token];
  if (core >= 0 && core != caller)
    return {core};
  if (caller >= 0)
    return {caller, /*isExcluded=*/true};
  return helper.runsOn.isExcluded ? helper.runsOn : CoreSet();
}

void Cores::bind(pthread_t thread, const CoreSet &cores) const {
  cpu_set_t set = allowed;
  if (cores.isExcluded) {
    CPU_CLR(cores.core, &set);
  } else if (cores.core >= 0) {
    CPU_ZERO(&set);
    CPU_SET(cores.core, &set);
  }
  pthread_setaffinity_np(thread, sizeof set, &set); // a failure costs time only
}

void Cores::wakeFrom(const Loop &loop, size_t first) {
  size_t end = std::min(loop.crew.size(), first + kWakes);
  for (size_t place = first; place < end; ++place)
    loop.crew[place]->wake.give();
}

/// Runs pieces until none is left or the thread is wanted elsewhere.
template <typename F> void Cores::work(Loop &loop, F isWanted) {
  auto start = std::chrono::steady_clock::now();
  for (int64_t piece;
       !isWanted() && (piece = loop.next.fetch_add(1)) < loop.pieces;)
    loop.body(piece);
  loop.nanoseconds +=
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count();
}

/// Only the last to leave touches the loop after this count.
void Cores::leave(Loop &loop) {
  if (loop.inside.fetch_sub(1) == 1)
    loop.left.give();
}

double Cores::run(int64_t pieces, FunctionRef<void(int64_t)> body,
                  int64_t mostHelpers) {
  mostHelpers = std::min({mostHelpers, pieces - 1, int64_t(total) - 1});
  Loop loop{body, pieces, std::max<int64_t>(mostHelpers, 0)};
  auto never = [] { return false; };
  if (mostHelpers <= 0) {
    work(loop, never);
    return 1e-9 * static_cast<double>(loop.nanoseconds);
  }
  {
    std::unique_lock held = lock();
    loops.push_back(&loop);
    ++openLoops;
    settle();
    invite(loop, loop.crew);
  }
  wakeFrom(loop, 0);
  work(loop, never);
  {
    std::unique_lock held = lock();
    loops.erase(std::find(loops.begin(), loops.end(), &loop));
    cancel(loop, INT64_MAX);
    settle();
    lend();
  }
  leave(loop);
  loop.left.takeSoon();
  --openLoops; // late enough: a helper that leaves a loop sees all other ones
  return 1e-9 * static_cast<double>(loop.nanoseconds);
}

void Cores::cancel(Loop &loop, int64_t most) {
  for (const std::vector<Helper *> *list : {&loop.late, &loop.crew})
    for (size_t i = list->size(); i-- > 0;) {
      if (most == 0 || loop.unstarted.load() == 0)
        return;
      Helper &helper = *(*list)[i];
      Loop *expected = &loop;
      if (!helper.invitation.compare_exchange_strong(expected, nullptr))
        continue;
      freeTokens.push_back(helper.token);
      idle.push_back(&helper);
      --loop.unstarted;
      --loop.inside;
      --most;
    }
}

void Cores::help(Helper &self) {
  bool isCoreTaken = false; // by a rank, which runs there
  while (true) {
    isCoreTaken ? self.wake.take() : self.wake.takeSoon();
    if (stopping)
      return;
    if (Loop *loop = self.invitation.exchange(nullptr))
      isCoreTaken = join(self, *loop);
  }
}

bool Cores::join(Helper &self, Loop &loop) {
  --loop.unstarted;
  wakeFrom(loop, kWakes * (self.place + 1));
  // A rank that wants a core gets this one after the current piece.
  bool wanted = false;
  work(loop, [&] { return wanted = isCalled(); });
  self.next = returned.load();
  while (!returned.compare_exchange_weak(self.next, &self))
    ;
  if (wanted || waiting.load() > 0 || openLoops.load() > 1) {
    std::unique_lock held = lock();
    settle();
    lend();
  }
  leave(loop);
  return wanted;
}

} // namespace rota
