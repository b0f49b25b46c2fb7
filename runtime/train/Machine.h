// SPDX-License-Identifier: Apache-2.0
//
// The in-process machine that a program runs on: cores, one thread, one arena
// and one context for each rank.
#ifndef ROTA_RUNTIME_TRAIN_MACHINE_H
#define ROTA_RUNTIME_TRAIN_MACHINE_H

#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/Cores.h"
#include "runtime/program/Program.h"
#include "runtime/trace/Profile.h"

#include <deque>
#include <exception>
#include <functional>

namespace rota {

/// A program and the compiled functions that its numbers mean. It does not own
/// them.
struct Executable {
  const Program *program = nullptr;
  const RotaTask *tasks = nullptr;
  const RotaKernel *kernels = nullptr;
};

/// Threads that run a function once for each rank, again and again.
class Team {
public:
  explicit Team(int ranks);
  ~Team();
  /// Runs body(rank) on every rank's thread and waits for all; then throws the
  /// exception of the lowest rank that threw one.
  void run(const std::function<void(int rank)> &body);

private:
  void work(int rank);

  std::mutex mutex;
  std::condition_variable start, finished;
  const std::function<void(int)> *body = nullptr;
  int64_t generation = 0;
  int running = 0;
  bool stopping = false;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;
};

class Machine {
public:
  /// Maps the arenas. `threads` is the number of compute tokens.
  Machine(const Executable &executable, int threads, bool profile);

  const Program &program() const { return *executable.program; }
  int ranks() const { return static_cast<int>(arenas.size()); }
  const Arena &arena(int rank) const { return arenas[rank]; }
  RotaContext *context(int rank) { return &contexts[rank]; }
  RotaTask task(int number) const { return executable.tasks[number]; }
  RotaKernel kernel(int number) const { return executable.kernels[number]; }
  const RotaKernel *kernels() const { return executable.kernels; }
  const std::deque<Profile> &profiles() const { return rankProfiles; }
  Cores &cores() { return coreSet; }

  /// The place as an array of T; null for the offset -1.
  template <typename T> T *at(int rank, int64_t offset) const {
    return reinterpret_cast<T *>(arenas[rank].at(offset));
  }
  template <typename T> T *at(const Place &place) const {
    return at<T>(place.stage, place.offset);
  }

  /// Runs body(rank) on all ranks' threads at once and waits for them.
  void onEachRank(const std::function<void(int rank)> &body) { team.run(body); }

private:
  Executable executable;
  Cores coreSet;
  std::vector<Arena> arenas;
  std::deque<Profile> rankProfiles; // empty without --profile
  std::deque<RotaContext> contexts;
  Team team; // last, so that its threads end first
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_MACHINE_H
