// SPDX-License-Identifier: Apache-2.0
//
// Lays out what lives as long as the program, region by region.
#include "lowering/memory/StaticBlocks.h"

#include <algorithm>

namespace rota::memory {
namespace {

/// A parameter block of one rank while it is being placed.
struct Held {
  const ParameterBlock *block;
  int64_t layer; // -1: of an end
  BlockPlace *place;
  size_t borrowed = 0; // leading entries that another rank or block owns
  size_t firstUpdate = 0;
};

class RankLayout {
public:
  RankLayout(const Layout &layout, const ChunkTable &chunks,
             const pipe::Shape &shape, int number, Program &program,
             RankPlaces &places)
      : layout(layout), shape(shape), number(number), program(program),
        rank(program.stages[number]), places(places) {
    hasEmbed = shape.rankOf(0) == number;
    hasLoss = shape.rankOf(shape.chunks() - 1) == number;
    if (hasEmbed)
      held.push_back({&layout.embed.block, -1, &places.embed});
    for (int c = 0; c < shape.chunks(); ++c) {
      if (shape.rankOf(c) != number)
        continue;
      for (const ChunkLayer &l : chunks[c]) {
        held.push_back(
            {&layout.kinds[l.kind].block, l.layer, &places.layers[l.layer]});
        useScratch(layout.kinds[l.kind]);
      }
    }
    if (hasLoss)
      held.push_back({&layout.loss.block, -1, &places.loss, tiedEntries()});
    if (hasEmbed)
      useScratch(layout.embed);
    if (hasLoss)
      useScratch(layout.loss);
    if (hasLoss && layout.logits >= 0)
      scratch = std::max(scratch, layout.scratchBytes[layout.logits]);
  }

  void run() {
    region("parameters", [&] {
      placeValues(/*copies=*/false);
      placeMasters();
    });
    region("compute copies", [&] { placeValues(/*copies=*/true); });
    finishUpdates();
    region("gradients", [&] { placeGradients(); });
    region("optimizer", [&] { placeMoments(); });
    region("constants", [&] { placeConstants(); });
    region("data", [&] { placeData(); });
    region("scratch", [&] { places.scratch = arena.add(scratch); });
    places.end = arena.bytes();
  }

private:
  template <typename Fill> void region(const char *use, Fill fill) {
    int64_t begin = arena.bytes();
    fill();
    rank.regions.push_back({use, begin, arena.bytes() - begin});
  }

  void useScratch(const TaskGroup &group) {
    for (int task : {group.forward, group.backward, group.backwardInput,
                     group.backwardWeight})
      if (task >= 0)
        scratch = std::max(scratch, layout.scratchBytes[task]);
  }

  size_t tiedEntries() const {
    size_t count = 0;
    for (const auto &entry : layout.loss.block.entries)
      for (const auto &other : layout.embed.block.entries)
        count += entry.parameter == other.parameter;
    return count;
  }

  const Parameter &parameter(const ParameterBlock::Entry &entry) const {
    return program.parameters[entry.parameter];
  }

  /// True when a block holds anything but masters of this rank.
  bool isCopy(const Held &h) const {
    bool elsewhere = h.borrowed > 0 && !hasEmbed;
    return elsewhere ||
           std::any_of(h.block->entries.begin(), h.block->entries.end(),
                       [&](const auto &entry) {
                         return parameter(entry).compute != ElementType::F32;
                       });
  }

  void placeValues(bool copies) {
    for (Held &h : held) {
      // A rank that has both ends holds what they share once: the end of
      // embed's block is the beginning of loss's.
      bool second = h.place == &places.loss && hasEmbed;
      if (second) {
        if (h.place->values < 0 && places.embed.values >= 0)
          h.place->values =
              places.embed.values + layout.embed.block.bytes - layout.tiedBytes;
        continue;
      }
      if (h.place == &places.embed && hasLoss) {
        const ParameterBlock &loss = layout.loss.block;
        if ((isCopy(h) || isCopy(held.back())) == copies)
          h.place->values =
              arena.add(h.block->bytes + loss.bytes - layout.tiedBytes);
        continue;
      }
      if (isCopy(h) == copies)
        h.place->values = arena.add(h.block->bytes);
    }
  }

  /// Masters of what tasks read in another type, and an update for each
  /// parameter that this rank owns.
  void placeMasters() {
    for (Held &h : held) {
      h.firstUpdate = rank.updates.size();
      for (size_t i = h.borrowed; i < h.block->entries.size(); ++i) {
        const auto &entry = h.block->entries[i];
        Update update;
        update.parameter = entry.parameter;
        update.layer = h.layer;
        if (parameter(entry).compute != ElementType::F32)
          update.master = arena.add(4 * elementCount(parameter(entry)));
        rank.updates.push_back(update);
      }
    }
  }

  void finishUpdates() {
    for (Held &h : held)
      for (size_t i = h.borrowed; i < h.block->entries.size(); ++i) {
        Update &update = rank.updates[h.firstUpdate + i - h.borrowed];
        int64_t value = h.place->values + h.block->entries[i].value;
        if (update.master < 0)
          update.master = value;
        update.stored = update.updated = value;
      }
  }

  void placeGradients() {
    for (Held &h : held) {
      h.place->gradients = arena.add(h.block->gradientBytes);
      for (size_t i = h.borrowed; i < h.block->entries.size(); ++i) {
        Update &update = rank.updates[h.firstUpdate + i - h.borrowed];
        update.gradient = h.place->gradients + h.block->entries[i].gradient;
        update.gradients.push_back({number, update.gradient});
      }
    }
  }

  void placeMoments() {
    for (Update &update : rank.updates) {
      int64_t bytes = 4 * elementCount(program.parameters[update.parameter]);
      update.firstMoment = arena.add(bytes);
      update.secondMoment = arena.add(bytes);
    }
  }

  void placeConstants() {
    places.constants = arena.add(layout.constantBytes);
    for (RotaryTable table : layout.tables) {
      table.offset += places.constants;
      rank.tables.push_back(table);
    }
  }

  void placeData() {
    int64_t count = shape.microbatches;
    if (hasEmbed)
      rank.inputData = arena.add(count * program.input.bytes());
    if (!hasLoss)
      return;
    rank.targetData = arena.add(count * program.target.bytes());
    rank.loss = arena.add(count * 2 * 4);
    if (!program.logits.shape.empty())
      rank.logits = arena.add(count * program.logits.bytes());
  }

  const Layout &layout;
  const pipe::Shape &shape;
  int number;
  Program &program;
  Stage &rank;
  RankPlaces &places;
  bool hasEmbed = false, hasLoss = false;
  std::vector<Held> held;
  int64_t scratch = 0;
  Packer arena;
};

/// A parameter of both ends is updated on the first chunk's rank, from embed's
/// gradient and then loss's; the last chunk's rank gets a copy if it is
/// another.
void tieEnds(const Layout &layout, const pipe::Shape &shape,
             const std::vector<RankPlaces> &places, Program &program) {
  int first = shape.rankOf(0), last = shape.rankOf(shape.chunks() - 1);
  for (const auto &entry : layout.loss.block.entries)
    for (Update &update : program.stages[first].updates) {
      bool shared = std::any_of(
          layout.embed.block.entries.begin(), layout.embed.block.entries.end(),
          [&](const auto &e) { return e.parameter == entry.parameter; });
      if (!shared || update.layer >= 0 || update.parameter != entry.parameter)
        continue;
      update.gradients.push_back(
          {last, places[last].loss.gradients + entry.gradient});
      if (first != last)
        update.copies.push_back({last, places[last].loss.values + entry.value});
    }
}

} // namespace

std::vector<RankPlaces> placeStaticBlocks(const Layout &layout,
                                          const ChunkTable &chunks,
                                          const pipe::Shape &shape,
                                          Program &program) {
  program.stages.assign(shape.stages, {});
  std::vector<RankPlaces> places(shape.stages);
  for (int r = 0; r < shape.stages; ++r)
    RankLayout(layout, chunks, shape, r, program, places[r]).run();
  tieEnds(layout, shape, places, program);
  return places;
}

} // namespace rota::memory
