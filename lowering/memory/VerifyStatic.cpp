// SPDX-License-Identifier: Apache-2.0
//
// Regions one after the other, and static blocks apart inside them.
#include "lowering/memory/VerifyStatic.h"

#include "runtime/program/Part.h"
#include "runtime/program/State.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace rota::memory {

const Region *findRegion(const std::vector<Region> &regions, const char *use) {
  for (const Region &region : regions)
    if (region.use == use)
      return &region;
  return nullptr;
}

KeptParameters keptParameters(const Program &program, int number) {
  KeptParameters kept(program.parameters.size());
  for (size_t s = 0; s < program.stages.size(); ++s)
    for (const Update &update : program.stages[s].updates) {
      auto place = [&]() -> KeptParameter & {
        auto &layers = kept[update.parameter];
        layers.resize(std::max<size_t>(layers.size(), update.layer + 2));
        return layers[update.layer + 1];
      };
      if (int(s) == number)
        place().stored = update.stored;
      for (const ArenaAddress &copy : update.copies)
        if (copy.stage == number)
          place().stored = copy.offset;
      for (const ArenaAddress &gradient : update.gradients)
        if (gradient.stage == number)
          place().accumulators.push_back(gradient.offset);
    }
  return kept;
}

namespace {

class StaticVerifier {
public:
  StaticVerifier(const ModelLayout &layout, const Program &program, int number)
      : layout(layout), program(program), stage(program.stages[number]),
        number(number) {}

  std::string run() {
    verifyRegions(stage.regions, stage.arenaBytes);
    verifyRegions(stage.hostRegions, stage.hostBytes);
    for (size_t s = 0; s < program.stages.size(); ++s)
      for (const Update &update : program.stages[s].updates)
        addUpdate(update, int(s));
    addConstants();
    addData();
    verifyStep();
    verifyApart();
    return error;
  }

private:
  void fail(const std::string &what) {
    if (error.empty())
      error = what;
  }

  void verifyRegions(const std::vector<Region> &regions, int64_t arena) {
    int64_t end = 0;
    for (const Region &r : regions) {
      if (r.offset < end)
        fail("expected the region '" + r.use + "' from " + std::to_string(end) +
             " on, got offset " + std::to_string(r.offset));
      end = r.offset + r.bytes;
    }
    if (end > arena)
      fail("expected regions inside the arena of " + std::to_string(arena) +
           " bytes, got " + std::to_string(end));
  }

  /// A block of its own, in region `use` where that is given.
  void add(int64_t offset, int64_t bytes, const std::string &what,
           const char *use = nullptr) {
    if (offset % kAlignment != 0)
      fail("expected " + what + " at a multiple of " +
           std::to_string(kAlignment) + ", got offset " +
           std::to_string(offset));
    if (use)
      verifyInside(offset, bytes, what, use);
    blocks.emplace_back(offset, bytes);
  }

  void verifyInside(int64_t offset, int64_t bytes, const std::string &what,
                    const std::string &use) {
    const Region *r = findRegion(stage.regions, use.c_str());
    if (!r || offset < r->offset || offset + bytes > r->offset + r->bytes)
      fail("expected " + what + " inside the region '" + use +
           "', got offset " + std::to_string(offset) + " and " +
           std::to_string(bytes) + " bytes");
  }

  /// Blocks of a parameter on this stage, which `owner` updates.
  void addUpdate(const Update &update, int owner) {
    const Parameter &p = program.parameters[update.parameter];
    std::string name = "'" + p.name + "'";
    int64_t stored = byteSize(p.compute) *
                     partElements(p.shape, p.storageDivision, program.mesh);
    int64_t optimizer =
        partElements(p.shape, p.optimizerDivision, program.mesh);
    for (const ArenaAddress &g : update.gradients)
      if (g.stage == number)
        add(g.offset,
            byteSize(p.gradient) *
                partElements(p.shape, p.storageDivision, program.mesh),
            "a gradient of " + name, "gradients");
    for (const ArenaAddress &c : update.copies)
      if (c.stage == number)
        add(c.offset, stored, "a copy of " + name);
    if (owner != number)
      return;
    add(update.master, byteSize(masterType(p)) * optimizer, name);
    if (update.stored != update.master)
      add(update.stored, stored, "the stored copy of " + name);
    if (update.updated != update.master && update.updated != update.stored)
      add(update.updated, byteSize(p.compute) * optimizer,
          "the update of " + name);
    if (!p.isFrozen && (update.gradients.empty() ||
                        update.gradients[0].offset != update.gradient))
      add(update.gradient, byteSize(p.gradient) * optimizer,
          "the summed gradient of " + name, "gradients");
    add(update.states, p.stateBytes, "the states of " + name, "optimizer");
  }

  /// Blocks that the tasks of a step's end have in the scratch: apart from each
  /// other.
  void verifyStep() {
    const StepOffsets &at = stage.step;
    int64_t scratch = 0, end = at.scalars;
    for (const Update &update : stage.updates) {
      const Parameter &p = program.parameters[update.parameter];
      for (int task : {p.updateTask, p.squareTask})
        if (task >= 0)
          scratch = std::max(scratch, layout.scratchBytes[task]);
    }
    auto verify = [&](int64_t offset, int64_t bytes, const char *what) {
      verifyInside(offset, bytes, what, "scratch");
      if (offset < end || offset % kAlignment != 0)
        fail(std::string("expected ") + what + " at a multiple of " +
             std::to_string(kAlignment) + " from " + std::to_string(end) +
             " on, got offset " + std::to_string(offset));
      end = offset + bytes;
    };
    verify(at.scalars, 4 * int64_t(program.scalars.size()), "the scalars");
    verify(at.squares, squarePlaces(program, stage).back(),
           "the sums of squares");
    verify(at.scratch, scratch, "the scratch of updates");
    if (program.samples && stage.logits >= 0) {
      const Region *r = findRegion(stage.regions, "scratch");
      end = (r ? r->offset : 0) + layout.scratchBytes[layout.logits];
      verify(stage.logits, logitsBytes(program), "the logits");
    }
    if (const Region *r = findRegion(stage.regions, "constants");
        !r || at.constants != r->offset)
      fail("expected the constants of updates at the region 'constants', got "
           "offset " +
           std::to_string(at.constants));
  }

  /// Tasks find each constant where the layout has it in its block.
  void addConstants() {
    const Region *constants = findRegion(stage.regions, "constants");
    int64_t base = constants ? constants->offset : 0;
    auto addOne = [&](int64_t offset, int64_t inBlock, int64_t bytes,
                      const char *what) {
      if (offset != base + inBlock)
        fail("expected " + std::string(what) + " at offset " +
             std::to_string(base + inBlock) + ", got " +
             std::to_string(offset));
      add(offset, bytes, what, "constants");
    };
    if (stage.tables.size() != layout.tables.size() ||
        stage.shardOffsets.size() != layout.shardOffsets.size() ||
        program.constantTensors != layout.program.constantTensors ||
        (stage.auxiliaryCotangents < 0) != (layout.auxiliaryCotangents < 0))
      return fail("expected the constants of the layout");
    for (size_t i = 0; i < stage.tables.size(); ++i) {
      const RotaryTable &table = stage.tables[i];
      addOne(table.offset, layout.tables[i].offset,
             table.positions * int64_t(table.frequencies.size()) * 8,
             "a table");
    }
    for (size_t i = 0; i < stage.shardOffsets.size(); ++i)
      addOne(stage.shardOffsets[i].offset, layout.shardOffsets[i].offset, 4,
             "an offset of a part");
    for (const ConstantTensor &tensor : program.constantTensors)
      add(stage.step.constants + tensor.offset, int64_t(tensor.bytes.size()),
          "a constant tensor", "constants");
    if (stage.auxiliaryCotangents >= 0)
      addOne(stage.auxiliaryCotangents, layout.auxiliaryCotangents,
             4 * int64_t(program.auxiliaryLosses.size()),
             "the cotangents of auxiliary losses");
  }

  void addData() {
    int64_t count = program.microbatches;
    auto addOptional = [&](int64_t offset, int64_t bytes, const char *what) {
      if (offset >= 0)
        add(offset, count * bytes, what, "data");
    };
    addOptional(stage.inputData, partBytes(program.input, program),
                "the inputs");
    addOptional(stage.targetData, partBytes(program.target, program),
                "the targets");
    addOptional(stage.positionData, partBytes(program.positions, program),
                "the positions in documents");
    addOptional(stage.loss, lossBytes(program), "the losses");
    if (!program.samples)
      addOptional(stage.logits, partBytes(program.logits, program),
                  "the logits");
    for (const AuxiliarySums &sums : stage.auxiliarySums)
      addOptional(sums.offset, 4 * int64_t(sums.losses.size()),
                  "the auxiliary losses");
    for (const ObservedTables &tables : stage.observedTables)
      addOptional(tables.offset, tableBytes(program, tables.observations),
                  "the observations");
  }

  void verifyApart() {
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 0; i + 1 < blocks.size(); ++i)
      if (blocks[i].first + blocks[i].second > blocks[i + 1].first)
        fail("expected blocks apart, got one of " +
             std::to_string(blocks[i].second) + " bytes at " +
             std::to_string(blocks[i].first) + " and one at " +
             std::to_string(blocks[i + 1].first));
    int64_t end =
        blocks.empty() ? 0 : blocks.back().first + blocks.back().second;
    for (const char *use : {"windows", "activations"})
      if (const Region *r = findRegion(stage.regions, use);
          r && end > r->offset)
        fail("expected the region '" + std::string(use) +
             "' after all static blocks");
  }

  const ModelLayout &layout;
  const Program &program;
  const Stage &stage;
  int number;
  std::string error;
  std::vector<std::pair<int64_t, int64_t>> blocks; // offset, bytes
};

} // namespace

std::string verifyStatic(const ModelLayout &layout, const Program &program,
                         int stage) {
  return StaticVerifier(layout, program, stage).run();
}

} // namespace rota::memory
