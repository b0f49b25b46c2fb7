// SPDX-License-Identifier: Apache-2.0
//
// Bounds checks over a program's tables.
#include "runtime/program/Verify.h"
#include "runtime/program/Checks.h"
#include "runtime/program/Part.h"
#include "runtime/program/State.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace rota {

std::string describe(const Stage &stage, int action, const std::string &peer) {
  const ActionTemplate &actionTemplate = stage.templateOf(action);
  std::string text = "chunk " + std::to_string(actionTemplate.chunk) +
                     ", microbatch " +
                     std::to_string(stage.actions[action].microbatch) + ", " +
                     toString(actionTemplate.kind);
  if (isSend(actionTemplate.kind))
    text += " to " + peer;
  if (isReceive(actionTemplate.kind))
    text += " from " + peer;
  return text + " (action " + std::to_string(action) + ")";
}

std::string describe(const Program &program, int number, int action) {
  const Stage &stage = program.stages[number];
  return "stage " + std::to_string(number) + ": " +
         describe(stage, action,
                  "stage " + std::to_string(stage.templateOf(action).peer));
}

namespace {

class ProgramVerifier : Checks {
public:
  ProgramVerifier(const Program &program, std::string &error)
      : Checks(program, error) {}

  bool run() {
    verifyMesh();
    for (const Observation &observation : program.observations)
      verifyObservation(observation);
    if (error.empty())
      verifyParameters(program, error);
    for (size_t s = 0; s < program.stages.size() && error.empty(); ++s)
      verifyStage(static_cast<int>(s));
    size_t counts = program.kernelRowBytes.size();
    if (counts != 0 && counts != program.kernels.size())
      fail("expected bytes a row of " + std::to_string(program.kernels.size()) +
           " kernels, got " + std::to_string(counts));
    return error.empty();
  }

private:
  void verifyMesh() {
    if (program.stages.empty())
      fail("the program has no stages");
    std::set<std::string> names;
    for (const MeshAxis &axis : program.mesh) {
      if (axis.size < 1)
        fail("mesh axis '" + axis.name + "': expected at least 1 rank, got " +
             std::to_string(axis.size));
      if (!names.insert(axis.name).second)
        fail("mesh axis '" + axis.name + "' is there twice");
    }
    if (!names.count("stage"))
      return fail("expected a mesh axis 'stage'");
    expect(static_cast<int64_t>(program.stages.size()),
           program.mesh[stageAxis(program.mesh)].size,
           "the size of mesh axis 'stage'");
    axes(program.lossAxes, "the axes of the loss");
  }

  void verifyUpdate(int stage, const Update &update) {
    index(update.parameter, program.parameters.size(), false,
          "an update's parameter");
    if (!error.empty())
      return;
    const Parameter &p = program.parameters[update.parameter];
    std::string what = "stage " + std::to_string(stage) + ": '" + p.name + "'";
    int64_t optimizer =
        partElements(p.shape, p.optimizerDivision, program.mesh);
    int64_t storage = partElements(p.shape, p.storageDivision, program.mesh);
    int64_t size = byteSize(p.compute);
    place(stage, update.master, byteSize(masterType(p)) * optimizer, false,
          what + " master");
    place(stage, update.updated, size * optimizer, false, what + " updated");
    place(stage, update.stored, size * storage, false, what + " stored copy");
    place(stage, update.states, p.stateBytes, false, what + " states");
    for (const ArenaAddress &c : update.copies)
      place(c.stage, c.offset, size * storage, false, what + " copy");
    if (!p.isFrozen)
      verifyGradient(stage, update, what);
    else if (!update.gradients.empty() || update.gradient >= 0)
      fail(what + ": expected no gradient, as it is frozen");
    if (isUpdatedInPlace(program, update) && !hasPartsInPlace(p, program.mesh))
      fail(what + ": expected what is updated apart from the stored copy, of "
                  "which it is no run of elements");
  }

  /// The gradient of a parameter that is updated, and its tasks.
  void verifyGradient(int stage, const Update &update,
                      const std::string &what) {
    const Parameter &p = program.parameters[update.parameter];
    int64_t size = byteSize(p.gradient);
    place(stage, update.gradient,
          size * partElements(p.shape, p.optimizerDivision, program.mesh),
          false, what + " summed gradient");
    for (const ArenaAddress &g : update.gradients)
      place(g.stage, g.offset,
            size * partElements(p.shape, p.storageDivision, program.mesh),
            false, what + " gradient");
    if (update.gradients.empty() || update.gradients[0].stage != stage)
      return fail(what + ": expected the first gradient accumulator on stage " +
                  std::to_string(stage));
    verifyInPlace(p, update, what);
    const Stage &owner = program.stages[stage];
    std::vector<int64_t> squares = squarePlaces(program, owner);
    place(stage, owner.step.squares, squares.back(), false,
          what + " sums of squares");
    if (p.updateTask < 0 || p.squareTask < 0)
      fail(what + ": expected an update task and a square task");
  }

  /// What lies inside of its accumulator must be a run of it; a gradient that
  /// nothing cuts to a buffer of its own lies there.
  void verifyInPlace(const Parameter &p, const Update &update,
                     const std::string &what) {
    bool isRun = hasPartsInPlace(p, program.mesh);
    int64_t optimizer =
        partElements(p.shape, p.optimizerDivision, program.mesh);
    bool isCut = false;
    if (!p.reduce.empty()) {
      const Collective &last = program.collectives[p.reduce.back()];
      isCut = last.kind != Collective::Kind::AllReduce &&
              outputElements(last, program.mesh) == optimizer;
    }
    int64_t accumulator = update.gradients[0].offset;
    if (!isCut && update.gradient != accumulator)
      fail(what +
           ": expected the summed gradient at the first accumulator's "
           "offset " +
           std::to_string(accumulator) + ", got " +
           std::to_string(update.gradient));
    if (isGradientInPlace(program, update) && !isRun)
      fail(what + ": expected the summed gradient apart from its accumulator, "
                  "of which it is no run of elements");
  }

  /// Bytes of one rank's part of every microbatch.
  int64_t dataBytes(const DataForm &form, const std::string &what) {
    division(form.division, form.shape, what);
    if (form.shape.empty() || !error.empty())
      return 0;
    return program.microbatches * byteSize(form.type) *
           partElements(form.shape, form.division, program.mesh);
  }

  void verifyLogits(int stage, const std::string &what) {
    const DataForm &form = program.logits;
    int64_t offset = program.stages[stage].logits;
    division(form.division, form.shape, what + "logits");
    if (!error.empty() || (offset < 0 && !program.samples))
      return;
    if (form.shape.empty())
      return fail(what + "expected a shape of the logits");
    place(stage, offset, logitsBytes(program), true, what + "logits");
    if (!program.samples)
      return;
    // A block has the rows of one call of the loss.
    std::vector<int64_t> rows = form.shape;
    rows.resize(2);
    rows[1] *= program.lossCalls;
    if (form.shape.size() != 3 || rows != program.target.shape)
      fail(what + "expected logits [batch, sequence, classes] of the targets "
                  "of a call of the loss");
  }

  void verifyAuxiliary(int stage, const std::string &what) {
    const Stage &s = program.stages[stage];
    for (const AuxiliarySums &sums : s.auxiliarySums) {
      std::string which =
          what + "auxiliary losses of layer " + std::to_string(sums.layer);
      for (int loss : sums.losses)
        index(loss, program.auxiliaryLosses.size(), false, which);
      place(stage, sums.offset,
            program.microbatches * 4 * static_cast<int64_t>(sums.losses.size()),
            false, which);
    }
    place(stage, s.auxiliaryCotangents,
          4 * static_cast<int64_t>(program.auxiliaryLosses.size()), true,
          what + "cotangents of auxiliary losses");
  }

  /// Ranks have equal numbers of rows of the sequences' parts, whose rows and
  /// columns they add up.
  void verifyObservation(const Observation &o) {
    int64_t sequences =
        program.input.shape.empty() ? 0 : program.input.shape[0];
    int64_t rows = sequences * std::max<int64_t>(o.parts, 0);
    if (o.rows < 1 || o.columns < 1 || o.each < 0 || rows < 1 ||
        rows % o.rows != 0)
      fail("observation '" + o.name +
           "': expected columns and rows that divide " + std::to_string(rows) +
           " parts of sequences, got " + std::to_string(o.rows) + " x " +
           std::to_string(o.columns));
  }

  void verifyObserved(int stage, const std::string &what) {
    for (const ObservedTables &tables : program.stages[stage].observedTables) {
      std::string which =
          what + "observations of layer " + std::to_string(tables.layer);
      for (int observation : tables.observations)
        index(observation, program.observations.size(), false, which);
      if (!error.empty())
        return;
      place(stage, tables.offset,
            program.microbatches * tableBytes(program, tables.observations),
            false, which);
    }
  }

  void verifyConstant(int stage, const ConstantTensor &tensor,
                      const std::string &what) {
    int64_t base = program.stages[stage].step.constants;
    if (base < 0 || tensor.offset < 0)
      return fail(what + ": expected a place, got constants at " +
                  std::to_string(base) + " and offset " +
                  std::to_string(tensor.offset));
    place(stage, base + tensor.offset,
          static_cast<int64_t>(tensor.bytes.size()), false, what);
  }

  void verifyStage(int stage) {
    const Stage &s = program.stages[stage];
    std::string what = "stage " + std::to_string(stage) + ": ";
    place(stage, s.inputData, dataBytes(program.input, "inputs"), true,
          what + "inputs");
    place(stage, s.targetData, dataBytes(program.target, "targets"), true,
          what + "targets");
    place(stage, s.positionData, dataBytes(program.positions, "positions"),
          true, what + "positions");
    place(stage, s.loss, program.microbatches * lossBytes(program), true,
          what + "losses");
    verifyLogits(stage, what);
    verifyAuxiliary(stage, what);
    verifyObserved(stage, what);
    for (const Region &region : s.regions)
      place(stage, region.offset, region.bytes, false, what + region.use);
    for (const Region &region : s.hostRegions)
      within(s.hostBytes, region.offset, region.bytes, false, what + region.use,
             "host arena");
    for (const RotaryTable &table : s.tables)
      place(stage, table.offset,
            table.positions * static_cast<int64_t>(table.frequencies.size()) *
                8,
            false, what + "rotary table");
    for (const ShardOffset &offset : s.shardOffsets) {
      axes(offset.axes, what + "shard offset");
      shift(offset.shift, offset.axes, what + "shard offset");
      place(stage, offset.offset, 4, false, what + "shard offset");
    }
    for (const ConstantTensor &tensor : program.constantTensors)
      verifyConstant(stage, tensor, what + "constant tensor");
    place(stage, s.step.scalars,
          4 * static_cast<int64_t>(program.scalars.size()), s.updates.empty(),
          what + "scalars");
    place(stage, s.step.scratch, 0, true, what + "scratch of updates");
    place(stage, s.step.constants, 0, true, what + "constants");
    for (const Update &update : s.updates)
      verifyUpdate(stage, update);
    if (error.empty())
      verifyActions(program, stage, error);
  }
};

/// Checks that sends and receives that match have as many bytes: those of one
/// source, destination and direction match in order.
bool verifyMessages(const Program &program, std::string &error) {
  using Channel = std::tuple<int, int, bool>;
  using Half = std::pair<int, int>; // stage, action
  std::map<Channel, std::vector<Half>> sends, receives;
  for (int s = 0; s < static_cast<int>(program.stages.size()); ++s) {
    const Stage &stage = program.stages[s];
    for (int a = 0; a < static_cast<int>(stage.actions.size()); ++a) {
      const ActionTemplate &action = stage.templateOf(a);
      bool forward = isForward(action.kind);
      if (isSend(action.kind))
        sends[{s, action.peer, forward}].push_back({s, a});
      else if (isReceive(action.kind))
        receives[{action.peer, s, forward}].push_back({s, a});
    }
  }
  auto bytesOf = [&](Half half) {
    return program.stages[half.first].templateOf(half.second).bytes;
  };
  auto name = [&](Half half) {
    return describe(program, half.first, half.second);
  };
  for (const auto &[channel, sent] : sends) {
    const std::vector<Half> &received = receives[channel];
    for (size_t i = 0; i < std::min(sent.size(), received.size()); ++i)
      if (bytesOf(sent[i]) != bytesOf(received[i])) {
        error = name(received[i]) + ": expected " +
                std::to_string(bytesOf(sent[i])) + " bytes as in " +
                name(sent[i]) + ", got " + std::to_string(bytesOf(received[i]));
        return false;
      }
  }
  return true;
}

bool verifyCounts(const Program &program, std::string &error) {
  auto check = [&](int64_t count, int64_t most, const char *what) {
    if (count >= 1 && count <= most)
      return true;
    error = "expected from 1 to " + std::to_string(most) + what + ", got " +
            std::to_string(count);
    return false;
  };
  constexpr int64_t any = std::numeric_limits<int32_t>::max();
  return check(program.microbatches, any, " microbatches") &&
         check(program.accumulationSteps, kMostAccumulationSteps,
               " accumulation steps") &&
         check(program.lossCalls, any, " calls of the loss in a microbatch");
}

/// Positions in documents are of all inputs, and whole sequences on each rank.
bool verifyPositions(const Program &program, std::string &error) {
  const DataForm &form = program.positions;
  if (form.shape.empty() ||
      (form.type == ElementType::I32 && form.shape == program.input.shape &&
       (form.division.empty() || form.division.back().empty()) &&
       program.documentEnd >= 0))
    return true;
  error =
      "expected positions in documents of whole sequences of inputs, and an "
      "end token of 0 or more, got " +
      std::to_string(program.documentEnd);
  return false;
}

} // namespace

bool verify(const Program &program, std::string &error) {
  error.clear();
  if (!verifyCounts(program, error) || !verifyPositions(program, error) ||
      !ProgramVerifier(program, error).run() || !verifyMessages(program, error))
    return false;
  std::vector<std::vector<double>> zeros;
  for (const Stage &stage : program.stages)
    zeros.emplace_back(stage.actions.size(), 0.0);
  Clock clock;
  return runClock(program, zeros, ActionSeconds::Measured, clock, error);
}

} // namespace rota
