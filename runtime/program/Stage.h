// SPDX-License-Identifier: Apache-2.0
//
// The memory and the timeline of the ranks of one pipeline stage. All offsets
// are bytes into the rank's arena; -1 means "none".
#ifndef ROTA_RUNTIME_PROGRAM_STAGE_H
#define ROTA_RUNTIME_PROGRAM_STAGE_H

#include "runtime/program/ActionTemplate.h"
#include "runtime/program/Observation.h"
#include "runtime/program/Parameter.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rota {

/// A block of the constants region that the runtime fills at start.
/// rotary: f32 [positions, frequencies, 2]: cos and sin of
/// position * frequency, computed in f64, times `scale`.
struct RotaryTable {
  int64_t offset = 0;
  int64_t positions = 0;
  double scale = 1.0;
  std::vector<double> frequencies;
};

/// A block of the constants region, filled at start: one i32, `start` plus
/// `factor` times the position along `axes` (the first slowest) that is `shift`
/// after the rank's, with the first position after the last. Compiled code
/// reads the first row of its part of a divided dimension there, or the number
/// of a block.
struct ShardOffset {
  int64_t offset = 0;
  std::vector<int> axes;
  int64_t factor = 1, shift = 0, start = 0;
};

/// Offsets for the tasks of a step's end. The first three lie in the scratch of
/// other tasks.
struct StepOffsets {
  int64_t scalars = -1; // f32, those of Program::scalars
  int64_t squares = -1; // f32, the rows of each update: squarePlaces
  int64_t scratch = -1;
  int64_t constants = -1;
};

/// A named part of a rank's arena, for reports: "parameters", "compute copies",
/// "gradients", "optimizer", "constants", "data", "scratch", "pair scratch" (of
/// the forward half of pairs), "windows" (gathered weights, and gradients until
/// REDUCE_GRAD), "activations"; "offloaded" in the host arena.
struct Region {
  std::string use;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// The memory and the timeline of every rank of one pipeline stage.
struct Stage {
  int64_t arenaBytes = 0;
  int64_t hostBytes = 0; // size of the host arena; 0: there is none
  std::vector<Region> regions;
  std::vector<Region> hostRegions;
  std::vector<RotaryTable> tables;
  std::vector<ShardOffset> shardOffsets;
  std::vector<Update> updates;
  StepOffsets step;
  std::vector<ActionTemplate> templates;
  std::vector<PlannedAction> actions; // the timeline
  std::vector<int64_t> slots;         // slots by action
  std::vector<int> waits;             // waits by action
  // The places of the microbatches' data and losses; -1: this stage has none.
  // Microbatch i is at the offset plus i times the bytes of one rank's part.
  // Stages with the loss write that of their microbatches; the rest stays zero.
  int64_t inputData = -1, targetData = -1, positionData = -1;
  int64_t loss = -1;   // [microbatches, lossCalls, lossNumbers] f32
  int64_t logits = -1; // [microbatches] blocks, or where it `samples` one block
  std::vector<AuxiliarySums> auxiliarySums;
  std::vector<ObservedTables> observedTables;
  // f32, one for each auxiliary loss, which the runtime fills when it knows the
  // main loss's weight: before a training step `startCalls`, without slots,
  // write that of each of `startMicrobatches`.
  int64_t auxiliaryCotangents = -1;
  std::vector<Call> startCalls;
  std::vector<int> startMicrobatches;

  /// Appends an action of the template `templateNumber` and returns its number.
  int addAction(int templateNumber, int microbatch,
                std::span<const int64_t> slots, std::span<const int> waits);
  /// Appends an action with a template of its own.
  int addAction(ActionTemplate actionTemplate, int microbatch,
                std::span<const int> waits = {});

  const ActionTemplate &templateOf(int action) const {
    return templates[actions[action].templateNumber];
  }
  ActionKind kindOf(int action) const { return templateOf(action).kind; }
  std::span<const int64_t> slotsOf(int action) const {
    return {slots.data() + actions[action].firstSlot,
            static_cast<size_t>(templateOf(action).slotCount)};
  }
  std::span<const int> waitsOf(int action) const {
    return {waits.data() + actions[action].firstWait,
            static_cast<size_t>(actions[action].waitCount)};
  }
  /// The number of actions of each template.
  std::vector<int64_t> countActions() const;
  /// The offset of an address in the action's template; -1: none.
  int64_t resolve(int action, const SlotAddress &address) const {
    return rota::resolve(address, slotsOf(action), actions[action].microbatch);
  }
  /// The frame of a call in the action's template.
  FrameOffsets frameOf(int action, const Call &call) const {
    return rota::frameOf(call, slotsOf(action), actions[action].microbatch);
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_STAGE_H
