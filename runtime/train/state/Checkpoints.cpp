// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/Checkpoints.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/train/Signals.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace rota {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Lets the system map all pages now, so that the first checkpoint does not
/// wait for it.
static void touch(const Arena &memory) {
  constexpr int64_t kPage = 4096;
  auto *bytes = static_cast<volatile char *>(memory.at(0));
  for (int64_t at = 0; at < memory.bytes(); at += kPage)
    bytes[at] = 0;
}

Checkpoints::Checkpoints(Rank &rank, const Options &options,
                         const Identity &identity, Report &report)
    : rank(rank), options(options), identity(identity), report(report),
      statuses(rank), lastStart(Clock::now()) {
  if (!isOn())
    return;
  tensors = stateTensors(rank.program());
  copy = stateCopy(rank.program(), tensors, rank.coordinates());
  memory = rank.device().makeHostArena(copy.bytes);
  touch(*memory);
}

bool Checkpoints::isDue(int64_t t) const {
  int64_t interval = options.checkpoints.interval;
  return isOn() && interval > 0 && t % interval == 0;
}

bool Checkpoints::asks() const {
  double seconds = options.checkpoints.seconds;
  bool isAsked = takeSaveRequest();
  bool isLate =
      seconds > 0.0 && rank.number() == 0 && secondsSince(lastStart) >= seconds;
  return isOn() && (isAsked || isLate);
}

void Checkpoints::copyState() {
  for (size_t i = 0; i < copy.pieces.size(); ++i) {
    const StatePiece &piece = copy.pieces[i];
    rank.device().read(rank.at(piece.offset), memory->at(copy.places[i]),
                       piece.bytes(tensors[piece.tensor]));
  }
}

double Checkpoints::start(const RunState &run) {
  rank.setPosition("checkpoint");
  Clock::time_point begin = Clock::now();
  finish();
  copyState();
  lastStart = Clock::now();
  pending = run;
  isPending = true;
  task.start([this](const std::atomic<bool> &isCancelled) {
    makePartialFolder(options.checkpoints.folder, pending.step);
    // A replica of other ranks has nothing to write.
    if (!copy.pieces.empty())
      writeRankFile(partial(), rank.number(), tensors, copy,
                    static_cast<char *>(memory->at(0)), isCancelled);
    if (rank.number() == 0)
      commit(isCancelled);
  });
  return secondsSince(begin);
}

void Checkpoints::advance() {
  if (!isPending)
    return;
  if (!statuses.isOpen())
    return statuses.start({static_cast<double>(task.now())});
  using Status = BackgroundTask::Status;
  std::vector<double> all = statuses.finish();
  auto is = [](Status status) {
    return [=](double number) { return number == static_cast<double>(status); };
  };
  if (std::any_of(all.begin(), all.end(), is(Status::Failed)))
    fail();
  if (!std::all_of(all.begin(), all.end(), is(Status::Done)))
    return;
  isPending = false;
  report.note(fmt::format("checkpoint {}",
                          (std::filesystem::path(options.checkpoints.folder) /
                           checkpointName(pending.step))
                              .string()));
}

void Checkpoints::finish() {
  // Rank 0's task waits for the files of the others, which one that has failed
  // does not write.
  constexpr std::chrono::milliseconds kBetweenExchanges(50);
  while (isPending) {
    task.waitFor(kBetweenExchanges);
    advance();
  }
}

std::string Checkpoints::partial() const {
  return (std::filesystem::path(options.checkpoints.folder) /
          partialName(pending.step))
      .string();
}

/// On rank 0, beside its training.
void Checkpoints::commit(const std::atomic<bool> &isCancelled) const {
  const Program &program = rank.program();
  std::map<int, StateCopy> writers;
  for (int r = 0; r < static_cast<int>(rankCount(program)); ++r)
    if (StateCopy part =
            stateCopy(program, tensors, coordinatesOf(program.mesh, r));
        !part.pieces.empty())
      writers.emplace(r, std::move(part));
  waitForRankFiles(partial(), writers.size(), isCancelled);
  const std::string &folder = options.checkpoints.folder;
  commitCheckpoint(folder, manifest(writers));
  removeOldCheckpoints(folder, pending, options.checkpoints.keep);
}

/// `writers`: the pieces of each rank that has some.
Manifest Checkpoints::manifest(const std::map<int, StateCopy> &writers) const {
  Manifest all;
  all.run = pending;
  all.identity = identity;
  all.config = rank.program().config;
  for (const StateTensor &tensor : tensors)
    all.tensors.push_back(
        {tensor.name, typeName(tensor.type), tensor.shape, {}});
  for (const auto &[number, part] : writers) {
    RankFile file = takePieceTable(partial(), number, part.pieces.size());
    for (size_t i = 0; i < part.pieces.size(); ++i)
      all.tensors[part.pieces[i].tensor].pieces.push_back(
          {static_cast<int>(all.files.size()), file.pieces[i].offset,
           part.pieces[i].part.begin, part.pieces[i].part.valid,
           file.pieces[i].hash});
    all.files.push_back({rankFileName(number), file.bytes});
  }
  std::sort(all.tensors.begin(), all.tensors.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  return all;
}

/// Every rank knows that one has failed. Afterwards none writes any more, and
/// all throw the first failure.
void Checkpoints::fail() {
  using Status = BackgroundTask::Status;
  std::string own = task.now() == Status::Failed ? task.message() : "";
  task.cancel();
  task.wait();
  std::string first;
  for (const std::string &message : gatherTexts(rank, own)) // on rank 0
    if (first.empty())
      first = message;
  std::error_code ignored;
  if (rank.number() == 0)
    std::filesystem::remove_all(partial(), ignored);
  throw RunError(textOfRankZero(rank, first));
}

} // namespace rota
