// SPDX-License-Identifier: Apache-2.0
//
// Lays out what lives as long as the program, region by region.
#include "lowering/memory/StaticBlocks.h"

#include "runtime/program/Part.h"
#include "runtime/program/State.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>

namespace rota::memory {
namespace {

/// A parameter block of one stage while it is being placed.
struct PlacedBlock {
  const ParameterBlock *block;
  int64_t layer; // -1: of an end
  BlockOffsets *offsets;
  std::vector<char> owned; // by entry: its update is on this stage, made here
  size_t firstUpdate = 0;
};

/// Places a stage's parameters and what belongs to them in its arena, a region
/// at a time.
class ParameterLayout {
public:
  ParameterLayout(const ModelLayout &layout, Program &program, Stage &stage,
                  StageOffsets &offsets, Packer &arena)
      : layout(layout), program(program), stage(stage), offsets(offsets),
        arena(arena), windows(hasWindows(program)) {}

  void holdEmbed() {
    hasEmbed = true;
    hold(layout.embed.block, -1, offsets.embed, /*first=*/true);
  }
  void holdLayer(const ChunkLayer &l, bool first) {
    hold(layout.kinds[l.kind].block, l.layer, offsets.layers[l.layer], first);
  }
  /// The last block. Whoever has `embed` owns what both ends share.
  void holdLoss(bool first) {
    hasLoss = true;
    hold(layout.loss.block, -1, offsets.loss, first);
    for (size_t i = 0; i < layout.loss.block.entries.size(); ++i)
      if (isTied(layout.loss.block.entries[i]))
        held.back().owned[i] = false;
  }

  void placeValues(bool copies) {
    if (windows)
      placeStored(copies);
    else
      placeBlocks(copies);
  }

  /// An update for each parameter that this stage owns, with a master for those
  /// that are stored in another type or division.
  void placeMasters() {
    for (PlacedBlock &h : held) {
      h.firstUpdate = stage.updates.size();
      for (size_t i = 0; i < h.block->entries.size(); ++i) {
        if (!h.owned[i])
          continue;
        const Parameter &p = parameter(h.block->entries[i]);
        Update update;
        update.parameter = h.block->entries[i].parameter;
        update.layer = h.layer;
        if (!isMaster(p))
          update.master = arena.add(4 * optimizerElements(p));
        stage.updates.push_back(update);
      }
    }
  }

  void placeUpdated() {
    forEachUpdate([&](Update &update, const BlockOffsets &offsets,
                      size_t entry) {
      const Parameter &p = program.parameters[update.parameter];
      update.stored = offsets.stored[entry];
      if (update.master < 0)
        update.master = update.stored;
      if (p.compute == ElementType::F32)
        update.updated = update.master;
      else if (p.refresh < 0 || hasPartsInPlace(p, program.mesh))
        update.updated = update.stored;
      else
        update.updated = arena.add(byteSize(p.compute) * optimizerElements(p));
    });
  }

  void placeGradients() {
    for (PlacedBlock &h : held) {
      const auto &entries = h.block->entries;
      if (!windows && h.block->gradientBytes > 0)
        h.offsets->gradients = arena.add(h.block->gradientBytes);
      for (size_t i = 0; i < entries.size(); ++i) {
        const Parameter &p = parameter(entries[i]);
        if (p.isFrozen)
          continue;
        h.offsets->accumulators[i] =
            windows ? arena.add(byteSize(p.gradient) *
                                partElements(p.shape, p.storageDivision,
                                             program.mesh))
                    : h.offsets->gradients + entries[i].gradient;
      }
    }
    forEachUpdate([&](Update &update, const BlockOffsets &offsets,
                      size_t entry) {
      const Parameter &p = program.parameters[update.parameter];
      if (p.isFrozen)
        return;
      bool isInPlace = p.refresh < 0 || hasPartsInPlace(p, program.mesh);
      update.gradient =
          isInPlace ? offsets.accumulators[entry]
                    : arena.add(byteSize(p.gradient) * optimizerElements(p));
    });
  }

  void placeStates() {
    for (Update &update : stage.updates)
      update.states =
          arena.add(program.parameters[update.parameter].stateBytes);
  }

private:
  void hold(const ParameterBlock &block, int64_t layer, BlockOffsets &offsets,
            bool first) {
    size_t count = block.entries.size();
    held.push_back({&block, layer, &offsets, std::vector<char>(count, first)});
    offsets.stored.assign(count, -1);
    offsets.accumulators.assign(count, -1);
  }

  /// Whether both ends use the parameter of an entry of `loss`.
  bool isTied(const ParameterBlock::Entry &entry) const {
    const auto &other = layout.embed.block.entries;
    return std::any_of(other.begin(), other.end(), [&](const auto &e) {
      return e.parameter == entry.parameter;
    });
  }

  const Parameter &parameter(const ParameterBlock::Entry &entry) const {
    return program.parameters[entry.parameter];
  }
  int64_t storedBytes(const Parameter &p) const {
    return byteSize(p.compute) *
           partElements(p.shape, p.storageDivision, program.mesh);
  }
  int64_t optimizerElements(const Parameter &p) const {
    return partElements(p.shape, p.optimizerDivision, program.mesh);
  }
  /// Whether what is stored of `p` is its master copy, too, where it is owned.
  static bool isMaster(const Parameter &p) {
    return p.compute == masterType(p) && p.refresh < 0;
  }

  /// True when a block holds anything but masters of this stage.
  bool isCopy(const PlacedBlock &h) const {
    for (size_t i = 0; i < h.block->entries.size(); ++i) {
      bool mine = h.owned[i] || (h.offsets == &offsets.loss && hasEmbed &&
                                 isTied(h.block->entries[i]));
      if (!mine || !isMaster(parameter(h.block->entries[i])))
        return true;
    }
    return false;
  }

  /// Each parameter's part by itself; a stage with both ends holds what they
  /// share once.
  void placeStored(bool copies) {
    for (PlacedBlock &h : held)
      for (size_t i = 0; i < h.block->entries.size(); ++i) {
        const Parameter &p = parameter(h.block->entries[i]);
        bool shared = h.offsets == &offsets.loss && hasEmbed &&
                      isTied(h.block->entries[i]);
        if (shared)
          h.offsets->stored[i] = storedByEmbed(h.block->entries[i].parameter);
        else if ((!isMaster(p) || !h.owned[i]) == copies)
          h.offsets->stored[i] = arena.add(storedBytes(p));
      }
  }
  int64_t storedByEmbed(int parameter) const {
    const auto &entries = layout.embed.block.entries;
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].parameter == parameter)
        return offsets.embed.stored[i];
    return -1;
  }

  /// Blocks as tasks read them.
  void placeBlocks(bool copies) {
    for (PlacedBlock &h : held) {
      // A stage that has both ends holds what they share once: the end of
      // embed's block is the beginning of loss's.
      bool second = h.offsets == &offsets.loss && hasEmbed;
      const PlacedBlock &end = held.back();
      bool both = h.offsets == &offsets.embed && hasLoss;
      bool isCopied = isCopy(h) || (both && isCopy(end));
      if (second && h.offsets->values < 0 && offsets.embed.values >= 0)
        h.offsets->values =
            offsets.embed.values + layout.embed.block.bytes - layout.tiedBytes;
      else if (!second && isCopied == copies)
        h.offsets->values = arena.add(
            h.block->bytes + (both ? end.block->bytes - layout.tiedBytes : 0));
      if (h.offsets->values < 0)
        continue;
      for (size_t i = 0; i < h.block->entries.size(); ++i)
        h.offsets->stored[i] = h.offsets->values + h.block->entries[i].value;
    }
  }

  /// Calls visit(update, offsets, entry) for each parameter that this stage
  /// owns.
  template <typename Visit> void forEachUpdate(Visit visit) {
    for (PlacedBlock &h : held) {
      size_t number = h.firstUpdate;
      for (size_t i = 0; i < h.block->entries.size(); ++i)
        if (h.owned[i])
          visit(stage.updates[number++], *h.offsets, i);
    }
  }

  const ModelLayout &layout;
  Program &program;
  Stage &stage;
  StageOffsets &offsets;
  Packer &arena;
  bool windows;
  bool hasEmbed = false, hasLoss = false;
  std::vector<PlacedBlock> held;
};

/// Places all that lives as long as the program.
class StageLayout {
public:
  StageLayout(const ModelLayout &layout, const ChunkTable &chunks,
              const pipe::Timeline &timeline, int number, Program &program,
              StageOffsets &offsets)
      : layout(layout), chunks(chunks), shape(timeline.shape),
        row(timeline.ranks[number]), hasPairs(pipe::hasPairs(timeline)),
        number(number), program(program), stage(program.stages[number]),
        offsets(offsets), parameters(layout, program, stage, offsets, arena) {
    hasEmbed = shape.rankOf(0) == number;
    hasLoss = shape.owns(number, shape.chunks() - 1);
    if (hasEmbed)
      parameters.holdEmbed();
    for (int c = 0; c < shape.chunks(); ++c) {
      if (!shape.owns(number, c))
        continue;
      for (const ChunkLayer &l : chunks[c]) {
        parameters.holdLayer(l, isFirst(c));
        useScratch(layout.kinds[l.kind]);
        layers.push_back(l);
      }
    }
    if (hasLoss)
      parameters.holdLoss(isFirst(shape.chunks() - 1));
    if (hasEmbed)
      useScratch(layout.embed);
    if (hasLoss)
      useScratch(layout.loss);
    for (int task : {layout.logits, layout.lossWeight})
      if (hasLoss && task >= 0)
        scratch = std::max(scratch, layout.scratchBytes[task]);
  }

  void run() {
    region("parameters", [&] {
      parameters.placeValues(/*copies=*/false);
      parameters.placeMasters();
    });
    region("compute copies", [&] {
      parameters.placeValues(/*copies=*/true);
      parameters.placeUpdated();
    });
    region("gradients", [&] { parameters.placeGradients(); });
    region("optimizer", [&] { parameters.placeStates(); });
    region("constants", [&] { placeConstants(); });
    region("data", [&] { placeData(); });
    region("scratch", [&] { placeScratch(); });
    if (hasPairs) // all stages have the same regions
      region("pair scratch", [&] { placePairScratch(); });
    offsets.end = arena.bytes();
  }

private:
  template <typename Fill> void region(const char *use, Fill fill) {
    int64_t begin = arena.bytes();
    fill();
    stage.regions.push_back({use, begin, arena.bytes() - begin});
  }

  /// Whether this stage is the first that has the chunk.
  bool isFirst(int chunk) const {
    for (int s = 0; s < number; ++s)
      if (shape.owns(s, chunk))
        return false;
    return true;
  }

  void useScratch(const TaskGroup &group) {
    for (int task : {group.forward, group.backward, group.backwardInput,
                     group.backwardWeight})
      if (task >= 0)
        scratch = std::max(scratch, layout.scratchBytes[task]);
  }

  /// One block for the tasks of actions, and again for those of a step's end.
  void placeScratch() {
    int64_t updateScratch = 0;
    for (const Update &update : stage.updates) {
      const Parameter &p = program.parameters[update.parameter];
      for (int task : {p.updateTask, p.squareTask})
        if (task >= 0)
          updateScratch = std::max(updateScratch, layout.scratchBytes[task]);
    }
    // Runs for single tokens have the logits after the scratch of their task.
    Packer sample;
    int64_t logits = -1;
    if (program.samples && hasLoss) {
      sample.add(layout.scratchBytes[layout.logits]);
      logits = sample.add(logitsBytes(program));
    }
    Packer step;
    StepOffsets &at = stage.step;
    at.scalars = step.add(4 * int64_t(program.scalars.size()));
    at.squares = step.add(squarePlaces(program, stage).back());
    at.scratch = step.add(updateScratch);
    offsets.scratch =
        arena.add(std::max({scratch, step.bytes(), sample.bytes()}));
    if (logits >= 0)
      stage.logits = offsets.scratch + logits;
    for (int64_t *offset : {&at.scalars, &at.squares, &at.scratch})
      *offset += offsets.scratch;
    at.constants = offsets.constants;
  }

  /// One block for the tasks of the forward halves of pairs.
  void placePairScratch() {
    int64_t bytes = 0;
    auto use = [&](int task) {
      bytes = std::max(bytes, layout.scratchBytes[task]);
    };
    for (size_t a = 0; a < row.size(); ++a) {
      if (!pipe::isPairedForward(row, a))
        continue;
      if (row[a].chunk == 0)
        use(layout.embed.forward);
      for (const ChunkLayer &l : chunks[row[a].chunk])
        use(layout.kinds[l.kind].forward);
    }
    offsets.pairScratch = arena.add(bytes);
  }

  void placeConstants() {
    offsets.constants = arena.add(layout.constantBytes);
    for (RotaryTable table : layout.tables) {
      table.offset += offsets.constants;
      stage.tables.push_back(table);
    }
    for (ShardOffset offset : layout.shardOffsets) {
      offset.offset += offsets.constants;
      stage.shardOffsets.push_back(offset);
    }
    if (layout.auxiliaryCotangents >= 0)
      stage.auxiliaryCotangents =
          offsets.constants + layout.auxiliaryCotangents;
  }

  void placeData() {
    int64_t count = shape.microbatches;
    if (hasEmbed)
      stage.inputData = arena.add(count * partBytes(program.input, program));
    if (int64_t bytes = partBytes(program.positions, program))
      stage.positionData = arena.add(count * bytes);
    for (const ChunkLayer &l : layers) {
      const std::vector<int> &losses = layout.kinds[l.kind].auxiliaryLosses;
      if (losses.empty())
        continue;
      int64_t offset = arena.add(count * 4 * int64_t(losses.size()));
      offsets.auxiliary[l.layer] = offset;
      stage.auxiliarySums.push_back({l.layer, offset, losses});
    }
    for (const ChunkLayer &l : layers) {
      const std::vector<int> &tables = layout.kinds[l.kind].observations;
      if (tables.empty())
        continue;
      int64_t offset = arena.add(count * tableBytes(program, tables));
      offsets.observed[l.layer] = offset;
      stage.observedTables.push_back({l.layer, offset, tables});
    }
    if (!hasLoss)
      return;
    stage.targetData = arena.add(count * partBytes(program.target, program));
    stage.loss = arena.add(count * lossBytes(program));
    if (!program.logits.shape.empty() && !program.samples)
      stage.logits = arena.add(logitsBytes(program));
  }

  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<Action> &row;
  bool hasPairs; // whether some stage has pairs
  int number;
  Program &program;
  Stage &stage;
  StageOffsets &offsets;
  bool hasEmbed = false, hasLoss = false;
  std::vector<ChunkLayer> layers; // layers of all its chunks
  int64_t scratch = 0;
  Packer arena;
  ParameterLayout parameters;
};

/// Links a parameter's update to its accumulators, in the order embed, layers,
/// loss, and by stage in each, and to the copies on other stages.
class UpdateLinks {
public:
  explicit UpdateLinks(Program &program) : program(program) {
    for (size_t s = 0; s < program.stages.size(); ++s)
      for (size_t u = 0; u < program.stages[s].updates.size(); ++u) {
        const Update &update = program.stages[s].updates[u];
        owners[{update.parameter, update.layer}] = {int(s), u};
      }
  }

  void add(const ParameterBlock &block, int64_t layer, int number,
           const BlockOffsets &offsets) {
    for (size_t i = 0; i < block.entries.size(); ++i) {
      auto [owner, index] = owners.at({block.entries[i].parameter, layer});
      Update &update = program.stages[owner].updates[index];
      if (!program.parameters[update.parameter].isFrozen)
        update.gradients.push_back({number, offsets.accumulators[i]});
      if (number != owner)
        update.copies.push_back({number, offsets.stored[i]});
    }
  }

private:
  Program &program;
  // Stage and number of each update, by parameter and layer.
  std::map<std::pair<int, int64_t>, std::pair<int, size_t>> owners;
};

void linkUpdates(const ModelLayout &layout, const ChunkTable &chunks,
                 const pipe::Shape &shape,
                 const std::vector<StageOffsets> &offsets, Program &program) {
  UpdateLinks links(program);
  auto addOfChunk = [&](int chunk, auto add) {
    for (int s = 0; s < shape.stages; ++s)
      if (shape.owns(s, chunk))
        add(s);
  };
  int first = shape.rankOf(0);
  links.add(layout.embed.block, -1, first, offsets[first].embed);
  for (int c = 0; c < shape.chunks(); ++c)
    for (const ChunkLayer &l : chunks[c])
      addOfChunk(c, [&](int s) {
        links.add(layout.kinds[l.kind].block, l.layer, s,
                  offsets[s].layers.at(l.layer));
      });
  addOfChunk(shape.chunks() - 1, [&](int s) {
    links.add(layout.loss.block, -1, s, offsets[s].loss);
  });
}

} // namespace

std::vector<StageOffsets> layOutStaticBlocks(const ModelLayout &layout,
                                             const ChunkTable &chunks,
                                             const pipe::Timeline &timeline,
                                             Program &program) {
  const pipe::Shape &shape = timeline.shape;
  program.stages.assign(shape.stages, {});
  std::vector<StageOffsets> offsets(shape.stages);
  for (int s = 0; s < shape.stages; ++s)
    StageLayout(layout, chunks, timeline, s, program, offsets[s]).run();
  linkUpdates(layout, chunks, shape, offsets, program);
  return offsets;
}

} // namespace rota::memory
