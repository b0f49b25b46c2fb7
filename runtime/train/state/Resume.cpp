// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/Resume.h"
#include "runtime/train/state/Identity.h"
#include "runtime/train/step/Gather.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace rota {

void checkIdentity(const Checkpoint &checkpoint, const ResumeRequest &request) {
  const auto &saved = checkpoint.manifest().identity;
  std::set<std::string> keys;
  for (const auto *values : {&saved, &request.identity})
    for (const auto &[key, value] : *values)
      keys.insert(key);
  compareIdentity(checkpoint, keys, request.identity, request.options.accepted);
}

namespace {

class CheckpointSearch {
public:
  CheckpointSearch(Rank &rank, const ResumeRequest &request)
      : rank(rank), request(request) {}

  std::optional<ResumedRun> run() {
    if (rank.number() == 0)
      findCandidates();
    while (true) {
      std::string folder =
          textOfRankZero(rank, candidates.empty() ? "" : candidates.front());
      if (folder.empty())
        return std::nullopt;
      if (std::optional<ResumedRun> resumed = attempt(folder))
        return resumed;
    }
  }

private:
  void findCandidates();
  std::optional<ResumedRun> attempt(const std::string &folder);
  bool isDamaged(const std::function<void()> &reading);
  void skip(const std::string &damage);

  Rank &rank;
  const ResumeRequest &request;
  // Rank 0's list, the newest first, without checkpoints that are known to be
  // damaged.
  std::vector<std::string> candidates;
  std::string parent; // the folder of checkpoints; empty: the only candidate
};

void CheckpointSearch::findCandidates() {
  const std::string &from = request.options.from;
  if (from == ResumeOptions::kNever)
    return;
  bool isAuto = from == ResumeOptions::kAuto;
  if (isAuto && request.checkpoints.empty())
    return;
  if (isAuto || !isCheckpoint(from))
    parent = isAuto ? request.checkpoints : from;
  candidates = isAuto ? findCheckpoints(parent) : checkpointsAt(from);
}

/// Drops the first candidate on rank 0.
void CheckpointSearch::skip(const std::string &damage) {
  if (parent.empty())
    throw InputError(damage);
  fmt::print(stderr, "warning: skipped a damaged checkpoint: {}\n", damage);
  candidates.erase(candidates.begin());
  if (candidates.empty())
    throw InputError(fmt::format("no checkpoint in '{}' is whole; '--resume "
                                 "never' begins the run anew",
                                 parent));
}

/// Whether `reading` finds damage on any rank.
bool CheckpointSearch::isDamaged(const std::function<void()> &reading) {
  std::string damage;
  try {
    reading();
  } catch (const DamagedCheckpoint &error) {
    damage = error.what();
  }
  std::vector<std::string> all = gatherTexts(rank, damage); // on rank 0
  auto first = std::ranges::find_if(
      all, [](const std::string &text) { return !text.empty(); });
  if (first != all.end())
    skip(*first);
  return decideTogether(rank, {!damage.empty()})[0];
}

std::optional<ResumedRun> CheckpointSearch::attempt(const std::string &folder) {
  std::optional<Checkpoint> checkpoint;
  if (isDamaged([&] { checkpoint.emplace(folder); }))
    return std::nullopt;
  checkTensors(*checkpoint, rank.program(), StateExtent::Masters);
  if (request.extent == StateExtent::All) {
    checkIdentity(*checkpoint, request);
    checkTensors(*checkpoint, rank.program(), StateExtent::All);
  }
  if (request.prepare)
    request.prepare(checkpoint->manifest().run);
  rank.setPosition("reading a checkpoint");
  if (isDamaged([&] { readState(rank, *checkpoint, request.extent); }))
    return std::nullopt;
  return ResumedRun{folder, checkpoint->manifest().run};
}

} // namespace

std::optional<ResumedRun> resume(Rank &rank, const ResumeRequest &request) {
  rank.setPosition("reading a checkpoint");
  return CheckpointSearch(rank, request).run();
}

} // namespace rota
