// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/ProcessRanks.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/threads/StartThread.h"

#include <fmt/format.h>
#include <utility>

namespace rota {

Team::Team(int count) : Team() {
  for (int i = 0; i < count; ++i)
    threads.push_back(
        startThread({"ranks", i + 1, count}, [this, i] { work(i); }));
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

/// The devices, once it is known that their memory suffices.
static Devices openDevices(const Executable &executable,
                           const Connection &connection,
                           const DeviceOptions &options) {
  const Program &program = *executable.program;
  Devices devices = makeDevices(program.device, connection.localRanks(),
                                executable.gpuCode, options);
  const Device &device = *devices.ranks.front();
  const bool isHost = !device.isAsynchronous();
  const int64_t besideArena =
      isHost ? 0 : runtimeMemory(program).bytes + connection.linkBytes();
  int64_t needed = 0;
  for (size_t i = 0; i < devices.ranks.size(); ++i) {
    std::vector<int64_t> at = coordinatesOf(
        program.mesh, connection.firstRank() + static_cast<int>(i));
    const Stage &stage = program.stages[at[stageAxis(program.mesh)]];
    needed += stage.arenaBytes + (isHost ? stage.hostBytes : besideArena);
  }
  Device::Memory memory = device.memory();
  if (memory.free < needed)
    throw InputError(fmt::format(
        "{}: expected {} bytes of {}memory, as `rota plan` says, got {}{}",
        device.name(), needed, isHost ? "" : "free ", memory.free,
        isHost ? "" : fmt::format(" of {}", memory.total)));
  return devices;
}

/// The memory nodes of ranks that compute on the host.
static NodePlan planOf(const Devices &devices, int threads) {
  bool isHost = !devices.ranks.front()->isAsynchronous();
  return planNodes(isHost ? memoryNodes() : std::vector<MemoryNode>(),
                   static_cast<int>(devices.ranks.size()), threads);
}

static std::deque<Cores> makePools(const NodePlan &plan, int threads) {
  std::deque<Cores> pools;
  for (int pool = 0; pool < plan.pools; ++pool) {
    OnNode scope(plan.nodeOf(pool * plan.ranksOfPool));
    int count = threads / plan.pools;
    pools.emplace_back(count, coresToBind(count, plan.ranksOfPool));
  }
  return pools;
}

ProcessRanks::ProcessRanks(const Executable &executable, Connection &connection,
                           const DeviceOptions &options, bool profile)
    : devices(openDevices(executable, connection, options)),
      plan(planOf(devices, options.threads)),
      pools(makePools(plan, options.threads)), linked(connection.link(devices)),
      team(static_cast<int>(connection.localRanks())) {
  for (int i = 0; i < static_cast<int>(devices.ranks.size()); ++i) {
    Rank &rank =
        ranks.emplace_back(executable, linked.links[i], *devices.ranks[i],
                           pools[i / plan.ranksOfPool], profile);
    for (const Arena *arena : {&rank.arena(), &rank.hostArena()})
      placeMemory(plan, i, arena->at(0), arena->bytes());
  }
}

namespace {
/// The cause of what other ranks throw, which may be earlier.
struct FullExpertsError : RunError {
  using RunError::RunError;
};
} // namespace

/// A failure of the device says which work it came from.
static void runOne(Rank &rank, const std::function<void(Rank &rank)> &body) {
  try {
    body(rank);
  } catch (const DeviceError &error) {
    throw RunError(rank.explain(error.what()));
  } catch (const std::exception &) {
    // What full experts leave behind may have failed this rank or another.
    if (std::optional<std::string> full = rank.fullExperts())
      throw FullExpertsError(*full);
    throw;
  }
}

void ProcessRanks::run(const std::function<void(Rank &rank)> &body) {
  // The failure of one rank throws on the others too, which may return first.
  // The exception of the first to fail is thrown again.
  std::mutex mutex;
  std::exception_ptr first;
  int failed = -1; // a rank whose failure is not the user's
  try {
    team.run([&](int i) {
      OnNode scope(plan.nodeOf(i));
      try {
        runOne(ranks[i], body);
      } catch (const std::exception &error) {
        {
          std::lock_guard lock(mutex);
          if (!first || dynamic_cast<const FullExpertsError *>(&error)) {
            first = std::current_exception();
            if (!dynamic_cast<const InputError *>(&error))
              failed = ranks[i].number();
          }
        }
        if (ranks[i].device().isAsynchronous())
          ranks[i].flight().add(FlightEvent::DeviceReached,
                                ranks[i].device().position());
        ranks[i].flight().add(FlightEvent::Failure, 0);
        ranks[i].communicator().fail(error.what());
        ranks[i].host().fail(error.what());
        throw;
      }
    });
  } catch (...) {
    if (failed >= 0)
      reportFlight(failed);
    std::rethrow_exception(first);
  }
}

} // namespace rota
