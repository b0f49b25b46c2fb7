// SPDX-License-Identifier: Apache-2.0
//
// Regions of an arena by the offsets of updates, blocks by what they hold.
#include "tools/planner/NamedUses.h"

#include "runtime/program/RuntimeMemory.h"
#include "runtime/program/State.h"
#include "tools/planner/MemoryCurve.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

namespace rota {
namespace {

using memory::alignUp;
using memory::BlockLife;
using memory::BlockUse;

bool isOfWindows(const BlockLife &life) {
  return life.tag.use == BlockUse::Weights ||
         life.tag.use == BlockUse::Gradients;
}

/// The blocks of windows, or of activations, at the moment at which they take
/// most bytes.
std::vector<BlockLife> fullest(const memory::BlockLives &lives, bool windows) {
  std::map<int, int64_t> changes; // bytes by position
  for (const BlockLife &life : lives)
    if (isOfWindows(life) == windows) {
      changes[life.first] += life.bytes;
      changes[life.last + 1] -= life.bytes;
    }
  int at = -1;
  int64_t bytes = 0, most = 0;
  for (auto [position, change] : changes)
    if ((bytes += change) > most) {
      most = bytes;
      at = position;
    }
  std::vector<BlockLife> held;
  for (const BlockLife &life : lives)
    if (isOfWindows(life) == windows && life.first <= at && at <= life.last)
      held.push_back(life);
  return held;
}

class UseSums {
public:
  UseSums(const Plan &plan, size_t number)
      : plan(plan), program(plan.program), number(number),
        stage(program.stages[number]) {}

  std::vector<NamedUse> collect() {
    for (const Stage &owner : program.stages)
      for (const Update &update : owner.updates)
        addUpdate(owner, update);
    std::vector<memory::BlockLives> lives = blockLives(plan);
    if (!lives.empty()) {
      addWindows(fullest(lives[number], /*windows=*/true));
      addActivations(fullest(lives[number], /*windows=*/false));
    }
    addRest();
    std::vector<NamedUse> uses;
    for (const auto &[key, use] : sums)
      uses.push_back(use);
    std::stable_sort(
        uses.begin(), uses.end(),
        [](const auto &a, const auto &b) { return a.bytes > b.bytes; });
    return uses;
  }

private:
  void add(const std::string &use, const std::string &name, int64_t bytes,
           int64_t count = 1) {
    if (bytes <= 0)
      return;
    NamedUse &sum = sums[{use, name}];
    sum.use = use;
    sum.name = name;
    sum.count += count;
    sum.bytes += bytes;
    named[use] += bytes;
  }

  /// The region that holds `offset`; empty: none does.
  std::string regionOf(int64_t offset) const {
    for (const Region &region : stage.regions)
      if (offset >= region.offset && offset < region.offset + region.bytes)
        return region.use;
    return "";
  }

  /// `what` of a parameter, at `offset`, unless that is another name of a place
  /// that has been counted.
  void addPlace(int64_t offset, int64_t bytes, const char *what,
                const Parameter &parameter) {
    if (offset >= 0 && bytes > 0 && places.insert(offset).second)
      add(regionOf(offset), fmt::format("{} of {}", what, parameter.name),
          alignUp(bytes));
  }

  void addUpdate(const Stage &owner, const Update &update) {
    const Parameter &p = program.parameters[update.parameter];
    auto elements = [&](const Division &division) {
      return partElements(p.shape, division, program.mesh);
    };
    int64_t stored = byteSize(p.compute) * elements(p.storageDivision);
    int64_t accumulated = byteSize(p.gradient) * elements(p.storageDivision);
    int64_t own = elements(p.optimizerDivision);
    if (&owner == &stage) {
      addPlace(update.stored, stored, "weights", p);
      addPlace(update.master, byteSize(masterType(p)) * own, "masters", p);
      addPlace(update.updated, byteSize(p.compute) * own, "updated weights", p);
      addPlace(update.states, p.stateBytes, "optimizer states", p);
    }
    for (const ArenaAddress &copy : update.copies)
      if (copy.stage == int(number))
        addPlace(copy.offset, stored, "weights", p);
    for (const ArenaAddress &gradient : update.gradients)
      if (gradient.stage == int(number))
        addPlace(gradient.offset, accumulated, "gradients", p);
    if (&owner == &stage)
      addPlace(update.gradient, byteSize(p.gradient) * own, "summed gradients",
               p);
  }

  void addWindows(const std::vector<BlockLife> &blocks) {
    for (const BlockLife &block : blocks)
      add("windows",
          fmt::format("windows: {} of chunk {}", nameOf(block.tag.use),
                      block.tag.chunk),
          block.bytes);
  }

  void addActivations(const std::vector<BlockLife> &blocks) {
    for (const BlockLife &block : blocks) {
      bool isKept = block.tag.use == BlockUse::Residuals ||
                    block.tag.use == BlockUse::Offloaded;
      int64_t rest = block.bytes;
      if (isKept)
        rest -= addResiduals(block, block.tag.use == BlockUse::Offloaded);
      add("activations", std::string("activations: ") + nameOf(block.tag.use),
          rest);
    }
  }

  /// Adds the values of a chunk's layers and returns their bytes.
  int64_t addResiduals(const BlockLife &block, bool areOffloaded) {
    int64_t bytes = 0;
    bool isFirst = true;
    for (const memory::ChunkLayer &layer : plan.chunks[block.tag.chunk]) {
      const memory::TaskGroup &kind = plan.layout.kinds[layer.kind];
      auto keep = [&](const std::string &name, int64_t each) {
        add("activations", "activations kept: " + name, alignUp(each));
        bytes += alignUp(each);
      };
      if (!std::exchange(isFirst, false) && kind.offloadsInput == areOffloaded)
        keep("inputs of layers", plan.layout.activationBytes);
      for (const mlir::rota::LayerResidual &value : plan.residuals.values)
        if (value.layer == kind.name && value.isOffloaded == areOffloaded)
          keep(fmt::format("{} of {}", value.name, value.layer), value.bytes);
    }
    return bytes;
  }

  /// Adds what has no name, so that regions have their bytes.
  void addRest() {
    for (const Region &region : stage.regions) {
      std::string name = region.use == "scratch" ? scratchName()
                         : named[region.use] > 0
                             ? region.use + ": gaps and others"
                             : region.use;
      add(region.use, name, region.bytes - named[region.use], /*count=*/0);
    }
    add("runtime", "numbers and workspaces of the runtime",
        deviceBytes(program, number) - stage.arenaBytes, /*count=*/0);
  }

  /// "scratch of layer.backward": the task that needs most.
  std::string scratchName() const {
    std::set<int> tasks;
    for (const ActionTemplate &form : stage.templates)
      for (const Call &call : form.calls)
        tasks.insert(call.task);
    auto most = std::max_element(tasks.begin(), tasks.end(), [&](int a, int b) {
      return plan.layout.scratchBytes[a] < plan.layout.scratchBytes[b];
    });
    return most == tasks.end() ? "scratch"
                               : "scratch of task " + program.tasks[*most];
  }

  const Plan &plan;
  const Program &program;
  size_t number;
  const Stage &stage;
  std::map<std::pair<std::string, std::string>, NamedUse> sums;
  std::map<std::string, int64_t> named; // bytes by use
  std::set<int64_t> places;
};

} // namespace

std::vector<NamedUse> namedUses(const Plan &plan, size_t stage) {
  return UseSums(plan, stage).collect();
}

} // namespace rota
