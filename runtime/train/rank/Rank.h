// SPDX-License-Identifier: Apache-2.0
//
// One rank of a run: the stage that it runs, its memory on its device, its
// threads and its end of the communication. Only the rank's own thread uses it,
// and in pairs a second one that runs tasks with a context of its own; what
// other ranks hold comes in messages alone.
#ifndef ROTA_RUNTIME_TRAIN_RANK_RANK_H
#define ROTA_RUNTIME_TRAIN_RANK_RANK_H

#include "runtime/collective/Communicator.h"
#include "runtime/device/Profile.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/trace/FlightRecorder.h"
#include "runtime/train/rank/Connection.h"
#include "runtime/train/rank/TaskContext.h"

#include <memory>
#include <optional>

namespace rota {

/// The message of a failure in a layer of an action; -1: in none.
std::string atLayer(int layer, const std::string &failure);

/// A program and the compiled functions that its numbers mean. It does not own
/// them.
struct Executable {
  const Program *program = nullptr;
  const RotaTask *tasks = nullptr;
  const RotaKernel *kernels = nullptr;
  std::span<const RotaGpuCode> gpuCode = {};
};

class Rank {
public:
  /// Makes the arenas of the stage that the links' rank runs.
  Rank(const Executable &executable, const Links &links, Device &device,
       Cores &cores, bool profile);

  const Program &program() const { return *executable.program; }
  int number() const { return links.tensors->rank(); }
  /// Its coordinate on each mesh axis.
  const std::vector<int64_t> &coordinates() const { return position; }
  int stageNumber() const { return stageIndex; }
  const Stage &stage() const { return program().stages[stageIndex]; }
  /// The rank with the same other coordinates on that stage.
  int peer(int stage) const;

  /// Moves tensors of the device, in the order of its work.
  Communicator &communicator() { return *links.tensors; }
  /// Moves the host's own numbers and texts.
  Communicator &host() { return *links.host; }
  /// The rank's present work, for messages of all ranks.
  void setPosition(const std::string &text);
  /// The group of that collective of the program, of the axes of the loss and
  /// the stage, and of all ranks.
  const RankGroup &group(int collective) const { return groups[collective]; }
  const RankGroup &lossGroup() const { return lossRanks; }
  const RankGroup &everyone() const { return all; }
  /// Starts that collective of the program on the rank's group.
  Request start(Stream stream, int collective, const void *source,
                void *destination);

  Cores &cores() { return coreSet; }
  RotaContext *context() { return firstTasks.context(); }
  /// The context of the second half of a pair. It has no profile.
  RotaContext *pairContext() { return secondTasks.context(); }
  /// Runs that task, with its time in the profile. The caller holds a core and
  /// looks at the context's `failed` afterwards.
  void runTask(RotaContext *context, int number, const RotaFrame &frame);
  void runTask(int number, const RotaFrame &frame) {
    runTask(context(), number, frame);
  }
  RotaKernel kernel(int number) const { return executable.kernels[number]; }
  const RotaKernel *kernels() const { return executable.kernels; }
  /// The rank's events, for when the run fails.
  FlightRecorder &flight() { return recorder; }
  /// Keeps host memory of transfers that are open for longer than a function
  /// runs: when this rank has failed, others may still read and write it.
  void keep(std::shared_ptr<void> memory) { kept.push_back(std::move(memory)); }
  /// Null without --profile.
  Profile *profile() const { return ownProfile.get(); }

  Device &device() const { return *firstTasks.context()->device; }
  const Arena &arena() const { return *memory; }
  const Arena &hostArena() const { return *hostMemory; }
  /// The runtime's own places on the device, and their addresses.
  const RuntimeMemory &places() const { return ownPlaces; }
  void *runtimeAt(int64_t offset) const { return runtimeMemory->at(offset); }
  /// Addresses in the arenas; null for the offset -1. Only the device and the
  /// communicator reach the bytes there.
  void *at(int64_t offset) const { return memory->at(offset); }
  void *hostAt(int64_t offset) const { return hostMemory->at(offset); }
  /// The `count` elements at a place of the arena.
  template <typename T>
  std::vector<T> read(int64_t offset, int64_t count) const {
    std::vector<T> values(static_cast<size_t>(count));
    device().read(at(offset), values.data(), count * int64_t(sizeof(T)));
    return values;
  }
  template <typename T>
  void write(const std::vector<T> &values, int64_t offset) const {
    device().write(values.data(), at(offset),
                   static_cast<int64_t>(values.size() * sizeof(T)));
  }

  /// Keeps the text of each position that the device is told.
  void setPositions(std::shared_ptr<const std::vector<std::string>> texts) {
    positions = std::move(texts);
  }
  /// The position of the work after the actions.
  int positionOfOptimizer() const {
    return static_cast<int>(stage().actions.size());
  }
  /// The position that the device has come to; empty where that is not known.
  /// Any thread may ask.
  std::string reached() const;
  /// The message of a failure of the device: it names the action whose work
  /// failed, or else the action `number` (-1: none).
  std::string explain(const std::string &failure, int number = -1) const;
  /// The error of experts that a GPU has found to be full, as on a host.
  std::optional<std::string> fullExperts() const;
  /// Throws it as RunError. The host has the results of the work in question.
  void rethrowFullExperts() const;
  /// TaskContext::waitedSeconds, but for second halves of pairs, during which
  /// the first half computes.
  double inTaskSeconds() const { return firstTasks.waitedSeconds(); }
  /// Waits for a transfer between the last action of a step and the first of
  /// the next, where nothing computes beside it.
  void waitAtStepEnd(Request request);
  /// The times of these. Those of a device that works on its own are not known
  /// and not in it.
  const TransferTimes &stepEndTimes() const { return stepEnd; }
  /// Throws what ended a collective inside a task, if anything did: the failure
  /// of another rank.
  void rethrowFailure() const;

private:
  std::string failureAt(int number, const std::string &failure) const;

  Executable executable;
  Links links;
  Cores &coreSet;
  std::vector<int64_t> position;
  int stageIndex;
  FlightRecorder recorder;
  std::vector<RankGroup> groups;
  RankGroup lossRanks, all;
  RuntimeMemory ownPlaces;
  std::unique_ptr<Arena> memory, hostMemory, runtimeMemory;
  std::vector<std::shared_ptr<void>> kept;
  std::unique_ptr<Profile> ownProfile;
  TransferTimes stepEnd;
  TaskContext firstTasks{*this, Stream::Task};
  TaskContext secondTasks{*this, Stream::PairTask};
  std::shared_ptr<const std::vector<std::string>> positions;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_RANK_H
