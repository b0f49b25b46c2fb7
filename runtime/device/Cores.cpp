// SPDX-License-Identifier: Apache-2.0
//
// Compute tokens and the helper threads, under one mutex: it is taken a few
// times per action and per parallel loop, never per piece.
#include "runtime/device/Cores.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <unistd.h>

namespace rota {

/// The cores on which the calling thread may run; none on a machine with more
/// than CPU_SETSIZE of them.
static cpu_set_t allowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    CPU_ZERO(&set);
  return set;
}

Cores::Cores(int count, std::vector<int> bound)
    : total(count), bound(std::move(bound)), allowed(allowedCores()),
      freeTokens(count), holders(count) {
  std::iota(freeTokens.rbegin(), freeTokens.rend(), 0);
  for (int i = 1; i < count; ++i)
    helpers.emplace_back([this] { help(); });
}

Cores::~Cores() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  workComes.notify_all();
  for (std::thread &helper : helpers)
    helper.join();
}

void Cores::acquire() {
  std::unique_lock lock(mutex);
  if (!freeTokens.empty()) {
    int token = takeFree();
    if (!freeTokens.empty() && !loops.empty())
      workComes.notify_one();
    lock.unlock();
    bind(pthread_self(), token);
    return;
  }
  Waiter self;
  queue.push_back(&self);
  ++waiting;
  self.ready.wait(lock, [&] { return self.granted; });
}

void Cores::release() {
  {
    std::lock_guard lock(mutex);
    auto isOwn = [](pthread_t holder) {
      return pthread_equal(holder, pthread_self());
    };
    auto place = std::find_if(holders.begin(), holders.end(), isOwn);
    giveBack(static_cast<int>(place - holders.begin()));
  }
  unbind();
}

int Cores::takeFree() {
  auto place = std::prev(freeTokens.end());
  if (!bound.empty()) {
    int here = sched_getcpu();
    auto isHere = [&](int token) { return bound[token] == here; };
    auto near = std::find_if(freeTokens.begin(), freeTokens.end(), isHere);
    if (near != freeTokens.end())
      place = near;
  }
  int token = *place;
  freeTokens.erase(place);
  holders[token] = pthread_self();
  return token;
}

void Cores::giveBack(int token) {
  if (queue.empty()) {
    holders[token] = {};
    freeTokens.push_back(token);
    if (!loops.empty())
      workComes.notify_one();
    return;
  }
  Waiter *next = queue.front();
  queue.pop_front();
  --waiting;
  holders[token] = next->thread;
  bind(next->thread, token); // before it wakes: it need not move then
  next->granted = true;
  next->ready.notify_one();
}

void Cores::bind(pthread_t thread, int token) const {
  if (bound.empty())
    return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(bound[token], &set);
  pthread_setaffinity_np(thread, sizeof set, &set); // a failure costs time only
}

void Cores::unbind() const {
  if (!bound.empty())
    pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
}

void Cores::run(int64_t pieces, FunctionRef<void(int64_t)> body) {
  if (pieces <= 1 || helpers.empty()) {
    for (int64_t piece = 0; piece < pieces; ++piece)
      body(piece);
    return;
  }
  Loop loop{body, pieces};
  {
    std::lock_guard lock(mutex);
    loops.push_back(&loop);
    if (!freeTokens.empty())
      workComes.notify_all();
  }
  for (int64_t piece; (piece = loop.next.fetch_add(1)) < pieces;)
    body(piece);
  std::unique_lock lock(mutex);
  loops.erase(std::find(loops.begin(), loops.end(), &loop));
  loopLeft.wait(lock, [&] { return loop.helpers == 0; });
}

Cores::Loop *Cores::findLoop() {
  for (Loop *loop : loops)
    if (loop->next.load() < loop->pieces)
      return loop;
  return nullptr;
}

void Cores::help() {
  std::unique_lock lock(mutex);
  while (true) {
    Loop *loop = nullptr;
    workComes.wait(lock, [&] {
      return stopping ||
             (!freeTokens.empty() && (loop = findLoop()) != nullptr);
    });
    if (stopping)
      return;
    int token = takeFree();
    ++loop->helpers;
    lock.unlock();
    bind(pthread_self(), token);
    // A rank that wants a core gets this one after the current piece.
    for (int64_t piece; waiting.load() == 0 &&
                        (piece = loop->next.fetch_add(1)) < loop->pieces;)
      loop->body(piece);
    lock.lock();
    if (--loop->helpers == 0)
      loopLeft.notify_all();
    giveBack(token);
    unbind();
  }
}

int availableCores() {
  cpu_set_t set = allowedCores();
  return std::max(1, CPU_COUNT(&set));
}

std::vector<int> coresToBind(int count, int ranks) {
  cpu_set_t set = allowedCores();
  std::vector<int> cores;
  // One rank a core keeps its place by itself, and other processes have ranks
  // on the same cores then: where they are is not known here.
  if (ranks > count && count == CPU_COUNT(&set))
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  return cores;
}

int machineCores() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

} // namespace rota
