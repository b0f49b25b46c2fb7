// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/ProcessRanks.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"

#include <fmt/format.h>
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

/// Before anything is allocated on a GPU: whether its memory suffices.
static void checkMemory(const Program &program, const Device &device,
                        const std::vector<Links> &links) {
  if (!device.isAsynchronous())
    return;
  int64_t needed = 0;
  for (const Links &link : links) {
    int64_t stage =
        coordinatesOf(program.mesh, link.host->rank())[stageAxis(program.mesh)];
    needed += program.stages[static_cast<size_t>(stage)].arenaBytes +
              runtimeMemory(program).bytes;
  }
  if (int64_t free = device.memory().free; free < needed)
    throw InputError(fmt::format("{}: expected {} bytes of free memory, as "
                                 "`rota plan` says, got {} of {}",
                                 device.name(), needed, free,
                                 device.memory().total));
}

ProcessRanks::ProcessRanks(const Executable &executable, Connection &connection,
                           const DeviceOptions &options, bool profile)
    : cores(options.threads),
      devices(makeDevices(executable.program->device, connection.localRanks(),
                          executable.gpuCode, options)),
      linked(connection.link(devices)),
      team(static_cast<int>(connection.localRanks())) {
  const std::vector<Links> &links = linked.links;
  checkMemory(*executable.program, *devices.front(), links);
  for (size_t i = 0; i < links.size(); ++i)
    ranks.emplace_back(executable, links[i], *devices[i], cores, profile);
}

/// A failure of the device says which work it came from.
static void runOne(Rank &rank, const std::function<void(Rank &rank)> &body) {
  try {
    body(rank);
  } catch (const DeviceError &error) {
    throw RunError(rank.explain(error.what()));
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
        runOne(ranks[i], body);
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
