// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/ProcessRanks.h"
#include "runtime/device/MakeDevice.h"

#include <utility>

namespace rota {

Team::Team(int count) {
  for (int i = 0; i < count; ++i)
    threads.emplace_back([this, i] { work(i); });
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
  if (error)
    std::rethrow_exception(std::exchange(error, nullptr));
}

void Team::work(int number) {
  int64_t seen = 0;
  std::unique_lock lock(mutex);
  while (true) {
    start.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    const std::function<void(int)> &function = *body;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      function(number);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (!error)
      error = thrown;
    if (--running == 0)
      finished.notify_one();
  }
}

ProcessRanks::ProcessRanks(const Executable &executable,
                           const std::vector<Communicator *> &communicators,
                           int threads, bool profile)
    : cores(threads), team(static_cast<int>(communicators.size())) {
  for (Communicator *communicator : communicators) {
    devices.push_back(
        makeDevice(executable.program->device, executable.gpuCode));
    ranks.emplace_back(executable, Links{communicator, communicator},
                       *devices.back(), cores, profile);
  }
}

void ProcessRanks::run(const std::function<void(Rank &rank)> &body) {
  // The failure of one rank throws on the others too, which may return first.
  // The exception of the first to fail is thrown again.
  std::mutex mutex;
  std::exception_ptr first;
  try {
    team.run([&](int i) {
      try {
        body(ranks[i]);
      } catch (const std::exception &error) {
        {
          std::lock_guard lock(mutex);
          if (!first)
            first = std::current_exception();
        }
        ranks[i].communicator().fail(error.what());
        ranks[i].host().fail(error.what());
        throw;
      }
    });
  } catch (...) {
    std::rethrow_exception(first);
  }
}

} // namespace rota
