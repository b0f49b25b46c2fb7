// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/RuntimeMemory.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/Part.h"

#include <algorithm>
#include <tuple>

namespace rota {

/// Elements of one message of a gradient.
static constexpr int64_t kMessageElements = 1 << 20;
/// The bytes that cuBLASLt asks for on Hopper; its algorithms for older GPUs
/// need less.
/// As much as the library recommends, from the first multiple of
/// kWorkspaceAlignment of device/cuda/BlasLtProduct.h on.
static constexpr int64_t kProductBytes = (32 << 20) + 256;
/// Pieces of about 1 MiB from each of 8 ranks, for 8 groups.
static constexpr int64_t kExchangeBytes = 128 << 20;
static constexpr int64_t kHostBytes = 4 << 20;
static constexpr int64_t kAlignment = 256;
/// What a launch and a sum add to tables at most: the first block, the rows and
/// the arguments, and the beginning of a table of its own at a multiple of 16.
static constexpr int64_t kLaunchBytes = 16 + 4 + 16 + 8;
static constexpr int64_t kSquareTableBytes = kLaunchBytes + 8 * 2 + 24 + 16;
static constexpr int64_t kUpdateTableBytes =
    kLaunchBytes + 8 * int64_t(ROTA_TABLE_ARGUMENTS);

static int64_t widestStage(const Program &program) {
  size_t widest = 0;
  for (const Stage &stage : program.stages)
    widest = std::max(widest, stage.updates.size());
  return static_cast<int64_t>(widest);
}

std::vector<NormTerm> normTerms(const Program &program) {
  std::vector<NormTerm> terms;
  int64_t ranks = rankCount(program), widest = widestStage(program);
  for (int64_t r = 0; r < ranks; ++r) {
    std::vector<int64_t> at = coordinatesOf(program.mesh, static_cast<int>(r));
    const Stage &stage = program.stages[at[stageAxis(program.mesh)]];
    for (size_t u = 0; u < stage.updates.size(); ++u) {
      const Update &update = stage.updates[u];
      const Parameter &p = program.parameters[update.parameter];
      if (!p.isFrozen && isFirstReplica(p.optimizerDivision, program.mesh, at))
        terms.push_back({update.parameter, update.layer,
                         r * widest + static_cast<int64_t>(u)});
    }
  }
  // Ranks are in the order of their parts already.
  std::sort(terms.begin(), terms.end(),
            [](const NormTerm &a, const NormTerm &b) {
              return std::tie(a.parameter, a.layer, a.number) <
                     std::tie(b.parameter, b.layer, b.number);
            });
  return terms;
}

std::map<int64_t, std::vector<int>> auxiliaryLayers(const Program &program) {
  std::map<int64_t, std::vector<int>> layers;
  for (const Stage &stage : program.stages)
    for (const AuxiliarySums &sums : stage.auxiliarySums)
      layers[sums.layer] = sums.losses;
  return layers;
}

std::map<int64_t, std::vector<int>> observedLayers(const Program &program) {
  std::map<int64_t, std::vector<int>> layers;
  for (const Stage &stage : program.stages)
    for (const ObservedTables &tables : stage.observedTables)
      layers[tables.layer] = tables.observations;
  return layers;
}

/// The most elements of a gradient's term that comes from another stage.
static int64_t largestTerm(const Program &program) {
  int64_t largest = 0;
  for (size_t s = 0; s < program.stages.size(); ++s)
    for (const Update &update : program.stages[s].updates)
      for (const ArenaAddress &place : update.gradients)
        if (place.stage != static_cast<int>(s)) {
          const Parameter &p = program.parameters[update.parameter];
          largest = std::max(
              largest, partElements(p.shape, p.storageDivision, program.mesh));
        }
  return largest;
}

static int64_t lossGroupSize(const Program &program) {
  std::vector<int> axes = program.lossAxes;
  int stage = stageAxis(program.mesh);
  if (std::find(axes.begin(), axes.end(), stage) == axes.end())
    axes.push_back(stage);
  return groupSize(program.mesh, axes);
}

RuntimeMemory runtimeMemory(const Program &program) {
  RuntimeMemory m;
  m.widest = widestStage(program);
  m.normCount = static_cast<int64_t>(normTerms(program).size());
  m.lossRanks = lossGroupSize(program);
  for (const auto &[layer, losses] : auxiliaryLayers(program))
    m.auxiliaryCount +=
        program.microbatches * static_cast<int64_t>(losses.size());
  for (const auto &[layer, observations] : observedLayers(program))
    m.observedBytes += program.microbatches * tableBytes(program, observations);
  m.termElements = std::min(kMessageElements, largestTerm(program));
  const DeviceTraits device = traitsOf(program.device);
  if (device.isGpu)
    m.workspaceBytes = kProductBytes;
  int64_t ranks = rankCount(program);
  if (device.hasNccl && ranks > 1)
    std::tie(m.exchangeBytes, m.hostBytes) =
        std::pair(kExchangeBytes, kHostBytes);
  auto take = [&](int64_t bytes) {
    int64_t place = m.bytes;
    m.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  };
  int64_t losses = program.microbatches * lossBytes(program);
  m.ownLosses = take(program.accumulationSteps * losses);
  constexpr int64_t kResultBytes = 8 * kStepResults;
  m.lossRows = program.accumulationSteps * m.lossRanks;
  m.resultBytes = kResultBytes + m.lossRows * (losses + 4 * m.auxiliaryCount) +
                  program.accumulationSteps * m.observedBytes;
  m.result = take(m.resultBytes);
  m.losses = m.result + kResultBytes;
  m.auxiliary = m.losses + m.lossRows * losses;
  m.observed = m.auxiliary + 4 * m.lossRows * m.auxiliaryCount;
  m.auxiliarySums = take(4 * program.accumulationSteps * m.auxiliaryCount);
  m.cotangentFactors =
      take(16 * static_cast<int64_t>(program.auxiliaryLosses.size()));
  m.scalars = take(8 * static_cast<int64_t>(program.scalars.size()));
  m.history = take(8 * kHistoryNumbers);
  m.squareVersions = device.isGpu ? 1 : 2;
  m.squares = take(8 * m.squareVersions * m.widest);
  m.allSquares = take(8 * m.squareVersions * m.widest * ranks);
  m.order = take(4 * m.normCount);
  if (device.isGpu) {
    m.squareTableBytes = kSquareTableBytes * m.widest;
    m.updateTableBytes = kUpdateTableBytes * m.widest;
  }
  m.squareTables = take(m.squareTableBytes);
  m.updateTables = take(m.updateTableBytes);
  m.terms = take(8 * m.termElements);
  m.workspace = take(m.workspaceBytes);
  m.pairWorkspace = hasPairs(program) ? take(m.workspaceBytes) : m.workspace;
  return m;
}

bool hasPairs(const Program &program) {
  for (const Stage &stage : program.stages)
    for (const ActionTemplate &form : stage.templates)
      if (form.startsPair)
        return true;
  return false;
}

std::vector<SnapshotPiece> snapshotPieces(const Program &program,
                                          const Stage &stage) {
  std::vector<SnapshotPiece> pieces;
  int64_t end = 0;
  auto add = [&](int64_t source, int64_t bytes) {
    if (bytes == 0)
      return;
    pieces.push_back({source, end, bytes});
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const Update &update : stage.updates) {
    const Parameter &p = program.parameters[update.parameter];
    if (p.isFrozen)
      continue;
    add(update.master,
        4 * partElements(p.shape, p.optimizerDivision, program.mesh));
    add(update.states, p.stateBytes);
  }
  return pieces;
}

int64_t snapshotBytes(const Program &program, const Stage &stage) {
  std::vector<SnapshotPiece> pieces = snapshotPieces(program, stage);
  if (pieces.empty())
    return 0;
  int64_t end = pieces.back().offset + pieces.back().bytes;
  return (end + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t deviceBytes(const Program &program, size_t stage) {
  int64_t bytes = program.stages[stage].arenaBytes;
  if (!traitsOf(program.device).isGpu)
    return bytes;
  RuntimeMemory memory = runtimeMemory(program);
  return bytes + memory.bytes + memory.exchangeBytes + memory.hostBytes;
}

} // namespace rota
