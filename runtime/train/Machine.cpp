// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Machine.h"

#include <utility>

namespace rota {

Team::Team(int ranks) : errors(ranks) {
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([this, rank] { work(rank); });
}

Team::~Team() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  start.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void Team::run(const std::function<void(int)> &function) {
  std::unique_lock lock(mutex);
  body = &function;
  running = static_cast<int>(threads.size());
  ++generation;
  start.notify_all();
  finished.wait(lock, [&] { return running == 0; });
  for (std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(std::exchange(error, nullptr));
}

void Team::work(int rank) {
  int64_t seen = 0;
  std::unique_lock lock(mutex);
  while (true) {
    start.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    const std::function<void(int)> &function = *body;
    lock.unlock();
    std::exception_ptr error;
    try {
      function(rank);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    errors[rank] = error;
    if (--running == 0)
      finished.notify_one();
  }
}

Machine::Machine(const Executable &executable, int threads, bool profile)
    : executable(executable), coreSet(threads),
      team(static_cast<int>(executable.program->stages.size())) {
  for (const Stage &rank : executable.program->stages) {
    arenas.emplace_back(rank.arenaBytes);
    RotaContext &context = contexts.emplace_back();
    context.cores = &coreSet;
    if (profile)
      context.profile = &rankProfiles.emplace_back();
  }
}

} // namespace rota
