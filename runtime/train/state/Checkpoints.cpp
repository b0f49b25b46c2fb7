// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/Checkpoints.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/train/Signals.h"
#include "runtime/train/step/Gather.h"

#include <algorithm>
#include <cstring>
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
  phase = Phase::Writing;
  // A replica of other ranks has nothing to write.
  if (!copy.pieces.empty())
    task.start([this](const std::atomic<bool> &isCancelled) {
      const std::string &folder = options.checkpoints.folder;
      makePartialFolder(folder, pending.step);
      std::filesystem::path path(folder);
      path /= partialName(pending.step);
      path /= rankFileName(rank.number());
      file = writeRankFile(path.string(), tensors, copy,
                           static_cast<char *>(memory->at(0)), isCancelled);
    });
  return secondsSince(begin);
}

void Checkpoints::advance() {
  if (phase == Phase::None)
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
  if (phase == Phase::Committing) {
    phase = Phase::None;
    report.note(fmt::format("checkpoint {}",
                            (std::filesystem::path(options.checkpoints.folder) /
                             checkpointName(pending.step))
                                .string()));
    return;
  }
  commit();
  phase = Phase::Committing;
}

void Checkpoints::finish() {
  while (phase != Phase::None) {
    task.wait();
    advance();
  }
}

/// Brings what the ranks have written to rank 0, which goes on beside its
/// training.
void Checkpoints::commit() {
  std::string own(sizeof file.bytes, ' ');
  std::memcpy(own.data(), &file.bytes, sizeof file.bytes);
  size_t bytes = file.pieces.size() * sizeof(RankFile::Piece);
  own.append(reinterpret_cast<const char *>(file.pieces.data()), bytes);
  std::vector<std::string> all = gatherTexts(rank, own);
  if (rank.number() != 0)
    return;
  task.start([this, all = std::move(all)](const std::atomic<bool> &) {
    const std::string &folder = options.checkpoints.folder;
    commitCheckpoint(folder, manifest(all));
    removeOldCheckpoints(folder, pending, options.checkpoints.keep);
  });
}

/// `written`: the RankFile of each rank, as `commit` sends it.
Manifest Checkpoints::manifest(const std::vector<std::string> &written) const {
  const Program &program = rank.program();
  Manifest all;
  all.run = pending;
  all.identity = identity;
  all.config = program.config;
  for (const StateTensor &tensor : tensors)
    all.tensors.push_back(
        {tensor.name, typeName(tensor.type), tensor.shape, {}});
  for (size_t r = 0; r < written.size(); ++r) {
    StateCopy part = stateCopy(
        program, tensors, coordinatesOf(program.mesh, static_cast<int>(r)));
    if (part.pieces.empty())
      continue;
    Manifest::File &file = all.files.emplace_back();
    file.name = rankFileName(static_cast<int>(r));
    std::memcpy(&file.bytes, written[r].data(), sizeof file.bytes);
    const char *next = written[r].data() + sizeof file.bytes;
    for (const StatePiece &piece : part.pieces) {
      RankFile::Piece place;
      std::memcpy(&place, next, sizeof place);
      next += sizeof place;
      all.tensors[piece.tensor].pieces.push_back(
          {static_cast<int>(all.files.size()) - 1, place.offset,
           piece.part.begin, piece.part.valid, place.hash});
    }
  }
  std::sort(all.tensors.begin(), all.tensors.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  return all;
}

/// Every rank knows that one has failed. Afterwards none writes any more, and
/// all throw what the first of them says.
void Checkpoints::fail() {
  task.cancel();
  task.wait();
  constexpr size_t kNumbers = 128; // for a message of 1024 bytes
  std::vector<double> own(kNumbers);
  if (task.now() == BackgroundTask::Status::Failed)
    std::memcpy(own.data(), task.message().data(),
                std::min(task.message().size(), kNumbers * sizeof(double) - 1));
  std::vector<double> all = gatherNumbers(rank, rank.everyone(), own);
  if (rank.number() == 0) {
    std::error_code ignored;
    std::filesystem::remove_all(
        std::filesystem::path(options.checkpoints.folder) /
            partialName(pending.step),
        ignored);
  }
  // A launcher may end rank 0 once another rank has ended.
  gatherNumbers(rank, rank.everyone(), {0.0});
  for (size_t r = 0; r * kNumbers < all.size(); ++r) {
    auto *text = reinterpret_cast<const char *>(all.data() + r * kNumbers);
    if (*text != 0)
      throw RunError(text);
  }
  throw RunError("a checkpoint could not be written");
}

} // namespace rota
