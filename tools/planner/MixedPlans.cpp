// SPDX-License-Identifier: Apache-2.0
//
// Joins the tasks of several plans in one layout, and plans that.
#include "tools/planner/MixedPlans.h"

#include "lowering/executable/ConstantTables.h"
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/StagePlan.h"
#include "runtime/program/RuntimeMemory.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace rota {

using memory::ModelLayout;
using memory::TaskGroup;

double ChunkCost::seconds() const {
  return std::accumulate(compute.begin(), compute.end(), 0.0);
}

template <typename Range>
static bool isNoneLarger(const Range &a, const Range &b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
}

bool ChunkCost::isAsFast(const ChunkCost &other) const {
  return isNoneLarger(compute, other.compute) &&
         isNoneLarger(transfers, other.transfers);
}

bool ChunkCost::isAsSmall(const ChunkCost &other) const {
  return stash - offloaded <= other.stash - other.offloaded &&
         stash <= other.stash && cotangents <= other.cotangents &&
         scratch <= other.scratch;
}

ChunkCost costOf(const PolicyParts &parts, int chunk) {
  memory::StashLayout stashes =
      memory::layOutStashes(parts.layout, parts.chunks, chunk);
  ChunkCost cost;
  cost.compute = parts.costs.chunks[chunk];
  cost.transfers = parts.costs.transfers[chunk];
  cost.stash = stashes.stashBytes + stashes.offloadedBytes;
  cost.offloaded = stashes.offloadedBytes;
  cost.cotangents = stashes.cotangentBytes;
  for (const memory::ChunkLayer &layer : parts.chunks[chunk]) {
    const TaskGroup &kind = parts.layout.kinds[layer.kind];
    for (int task :
         {kind.forward, kind.backward, kind.backwardInput, kind.backwardWeight})
      if (task >= 0)
        cost.scratch = std::max(cost.scratch, parts.layout.scratchBytes[task]);
  }
  return cost;
}

std::vector<int> mostLive(const pipe::Timeline &timeline) {
  std::vector<int> most(timeline.shape.chunks());
  for (const std::vector<Action> &row : timeline.ranks) {
    std::vector<int> live(most.size());
    for (const Action &action : row) {
      int &count = live[action.chunk];
      if (action.kind == ActionKind::Forward)
        most[action.chunk] = std::max(most[action.chunk], ++count);
      else if (action.kind == ActionKind::Backward ||
               action.kind == ActionKind::BackwardWeight)
        --count;
    }
  }
  return most;
}

/// For each chunk, whether one of its microbatches goes to host memory.
static std::vector<bool> offloadedChunks(const pipe::Timeline &timeline) {
  std::vector<bool> chunks(timeline.shape.chunks());
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row)
      if (action.kind == ActionKind::Offload)
        chunks[action.chunk] = true;
  return chunks;
}

/// Adds the kinds of `other` and their tasks.
static void addKinds(const ModelLayout &other, ModelLayout &joined) {
  int first = int(joined.scratchBytes.size());
  for (TaskGroup kind : other.kinds) {
    for (int *task : {&kind.forward, &kind.backward, &kind.backwardInput,
                      &kind.backwardWeight})
      if (*task >= 0)
        *task += first;
    joined.kinds.push_back(std::move(kind));
  }
  joined.program.tasks.insert(joined.program.tasks.end(),
                              other.program.tasks.begin(),
                              other.program.tasks.end());
  joined.scratchBytes.insert(joined.scratchBytes.end(),
                             other.scratchBytes.begin(),
                             other.scratchBytes.end());
}

MixedPlans::MixedPlans(std::vector<const PolicyParts *> given)
    : parts(std::move(given)), joined(parts.front()->layout),
      liveOf(mostLive(parts.front()->timeline)) {
  // Constants are counted, and not placed: `constantBytes`.
  joined.tables.clear();
  joined.shardOffsets.clear();
  joined.program.constantTensors.clear();
  for (const PolicyParts *part : parts) {
    bool isFirst = part == parts.front();
    firstKind.push_back(isFirst ? 0 : int(joined.kinds.size()));
    if (!isFirst)
      addKinds(part->layout, joined);
    offloads.push_back(offloadedChunks(part->timeline));
    std::vector<ChunkCost> &ofChunks = costs.emplace_back();
    for (int chunk = 0; chunk < shape().chunks(); ++chunk)
      ofChunks.push_back(::rota::costOf(*part, chunk));
  }
}

/// All tasks share the constants, and each constant stands once.
int64_t MixedPlans::constantBytes(const std::vector<int> &chosen) const {
  lowering::ConstantTables tables(joined.program.auxiliaryLosses);
  for (int policy = 0; policy < policies(); ++policy) {
    if (std::find(chosen.begin(), chosen.end(), policy) == chosen.end())
      continue;
    const ModelLayout &layout = parts[policy]->layout;
    for (const RotaryTable &table : layout.tables)
      tables.add(table);
    for (const ShardOffset &offset : layout.shardOffsets)
      tables.add(offset);
    for (const ConstantTensor &tensor : layout.program.constantTensors)
      tables.add(tensor);
    if (layout.auxiliaryCotangents >= 0)
      tables.addCotangents();
  }
  return tables.bytes();
}

/// The timeline of a part with the same copies to host memory. Without such a
/// part: that of the part with most copies, less those of other chunks.
pipe::Timeline MixedPlans::timelineOf(const std::vector<int> &chosen) const {
  std::vector<bool> wanted;
  for (size_t chunk = 0; chunk < chosen.size(); ++chunk)
    wanted.push_back(offloads[chosen[chunk]][chunk]);
  auto same = std::find(offloads.begin(), offloads.end(), wanted);
  if (same != offloads.end())
    return parts[same - offloads.begin()]->timeline;
  auto most = std::max_element(offloads.begin(), offloads.end(),
                               [](const auto &a, const auto &b) {
                                 return std::count(a.begin(), a.end(), true) <
                                        std::count(b.begin(), b.end(), true);
                               });
  pipe::Timeline timeline = parts[most - offloads.begin()]->timeline;
  for (std::vector<Action> &row : timeline.ranks)
    std::erase_if(row, [&](const Action &action) {
      return (action.kind == ActionKind::Offload ||
              action.kind == ActionKind::Fetch) &&
             !wanted[action.chunk];
    });
  return timeline;
}

std::vector<int64_t> MixedPlans::bytes(const std::vector<int> &chosen) {
  memory::ChunkTable chunks;
  for (size_t chunk = 0; chunk < chosen.size(); ++chunk) {
    chunks.push_back(parts[chosen[chunk]]->chunks[chunk]);
    for (memory::ChunkLayer &layer : chunks.back())
      layer.kind += firstKind[chosen[chunk]];
  }
  joined.constantBytes = constantBytes(chosen);
  Program program;
  std::string error;
  if (!memory::planMemory(joined, chunks, timelineOf(chosen), program, error))
    return {};
  std::vector<int64_t> bytes;
  for (size_t stage = 0; stage < program.stages.size(); ++stage)
    bytes.push_back(deviceBytes(program, stage));
  return bytes;
}

double MixedPlans::step(const std::vector<int> &chosen) const {
  pipe::CostTable table = parts.front()->costs;
  for (size_t chunk = 0; chunk < chosen.size(); ++chunk) {
    table.chunks[chunk] = costOf(int(chunk), chosen[chunk]).compute;
    table.transfers[chunk] = costOf(int(chunk), chosen[chunk]).transfers;
  }
  auto simulation = pipe::simulate(timelineOf(chosen), table);
  return simulation ? simulation->makespan
                    : std::numeric_limits<double>::infinity();
}

} // namespace rota
