// SPDX-License-Identifier: Apache-2.0
//
// Walks a stage's row and adds up the blocks that its actions hold.
#include "tools/planner/MemoryCurve.h"

#include "lowering/memory/MemoryPlan.h"
#include "runtime/program/RuntimeMemory.h"

#include <algorithm>

namespace rota {

using memory::BlockLife;

std::vector<memory::BlockLives> blockLives(const Plan &plan) {
  std::vector<memory::BlockLives> lives;
  Program program;
  std::string error;
  if (!memory::planMemory(plan.layout, plan.chunks, plan.timeline, program,
                          error, &lives))
    return {};
  return lives;
}

namespace {

class CurveWalk {
public:
  CurveWalk(const Plan &plan, const SimulatedPlan &simulated,
            const memory::BlockLives &lives, size_t stage)
      : row(plan.timeline.ranks[stage]),
        spans(simulated.simulation.spans[stage]), lives(lives),
        freed(row.size()), makespan(simulated.simulation.makespan) {
    for (const Region &region : plan.program.stages[stage].regions)
      if (region.use != "windows" && region.use != "activations")
        addUse(region.use, region.bytes);
    int64_t beside = deviceBytes(plan.program, stage) -
                     plan.program.stages[stage].arenaBytes;
    addUse("runtime", beside);
    for (const BlockLife &life : lives)
      if (useOf[int(life.tag.use)] < 0) {
        useOf[int(life.tag.use)] = int(curve.uses.size());
        curve.uses.push_back(nameOf(life.tag.use));
        now.bytes.push_back(0);
      }
  }

  MemoryCurve walk() {
    std::vector<std::vector<const BlockLife *>> opened(row.size());
    for (const BlockLife &life : lives)
      opened[life.first].push_back(&life);
    if (row.empty())
      sample();
    for (size_t i = 0; i < row.size(); ++i) {
      now.seconds = std::max(now.seconds, startOf(i));
      for (const BlockLife *life : opened[i]) {
        add(*life, 1);
        freed[life->last].push_back(life);
      }
      sample();
      if (freed[i].empty())
        continue;
      if (isCompute(row[i].kind))
        now.seconds = std::max(now.seconds, spans[i].end);
      for (const BlockLife *life : freed[i])
        add(*life, -1);
      sample();
    }
    now.seconds = makespan;
    sample();
    return std::move(curve);
  }

private:
  void addUse(const std::string &use, int64_t bytes) {
    if (bytes == 0)
      return;
    curve.uses.push_back(use);
    now.bytes.push_back(bytes);
    now.total += bytes;
  }

  void add(const BlockLife &life, int sign) {
    now.bytes[useOf[int(life.tag.use)]] += sign * life.bytes;
    now.total += sign * life.bytes;
  }

  void sample() {
    curve.samples.push_back(now);
    if (now.total > curve.samples[curve.peak].total)
      curve.peak = curve.samples.size() - 1;
  }

  /// Blocks of a transfer are taken when the rank comes to it, which may be
  /// before the transfer starts.
  double startOf(size_t i) const {
    return isTransfer(row[i].kind) ? 0 : spans[i].start;
  }

  const std::vector<Action> &row;
  const std::vector<TimeSpan> &spans;
  const memory::BlockLives &lives;
  std::vector<std::vector<const BlockLife *>> freed; // by position
  double makespan;
  // Numbers of uses in the curve, by BlockUse; -1: the stage has none.
  std::vector<int> useOf = std::vector<int>(memory::kBlockUses, -1);
  MemoryCurve curve;
  MemoryCurve::Sample now;
};

} // namespace

MemoryCurve memoryCurve(const Plan &plan, const SimulatedPlan &simulated,
                        const memory::BlockLives &lives, size_t stage) {
  return CurveWalk(plan, simulated, lives, stage).walk();
}

} // namespace rota
