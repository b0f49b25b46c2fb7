// SPDX-License-Identifier: Apache-2.0
//
// Compute tokens and the helper threads, under one mutex: it is taken a few
// times per action and per parallel loop, never per piece.
#include "runtime/device/cpu/Cores.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

namespace rota {

Cores::Cores(int count) : total(count), freeCores(count) {
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
  if (freeCores > 0) {
    --freeCores;
    if (freeCores > 0 && !loops.empty())
      workComes.notify_one();
    return;
  }
  Waiter self;
  queue.push_back(&self);
  ++waiting;
  self.ready.wait(lock, [&] { return self.granted; });
}

void Cores::release() {
  std::lock_guard lock(mutex);
  giveBack();
}

void Cores::giveBack() {
  if (queue.empty()) {
    ++freeCores;
    if (!loops.empty())
      workComes.notify_one();
    return;
  }
  Waiter *next = queue.front();
  queue.pop_front();
  --waiting;
  next->granted = true;
  next->ready.notify_one();
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
    if (freeCores > 0)
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
      return stopping || (freeCores > 0 && (loop = findLoop()) != nullptr);
    });
    if (stopping)
      return;
    --freeCores;
    ++loop->helpers;
    lock.unlock();
    // A rank that wants a core gets this one after the current piece.
    for (int64_t piece; waiting.load() == 0 &&
                        (piece = loop->next.fetch_add(1)) < loop->pieces;)
      loop->body(piece);
    lock.lock();
    if (--loop->helpers == 0)
      loopLeft.notify_all();
    giveBack();
  }
}

int availableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  return std::max(1, CPU_COUNT(&set));
}

int machineCores() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

} // namespace rota
