// SPDX-License-Identifier: Apache-2.0
//
// Bounds checks over a program's tables.
#include "runtime/program/Verify.h"
#include "runtime/program/Checks.h"
#include "runtime/program/Part.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace rota {

std::string describe(const Stage &stage, int action, const std::string &peer) {
  const ActionTemplate &form = stage.templateOf(action);
  std::string text = "chunk " + std::to_string(form.chunk) + ", microbatch " +
                     std::to_string(stage.actions[action].microbatch) + ", " +
                     toString(form.kind);
  if (isSend(form.kind))
    text += " to " + peer;
  if (isReceive(form.kind))
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
    if (program.microbatches < 1)
      fail("expected at least 1 microbatch, got " +
           std::to_string(program.microbatches));
    verifyMesh();
    if (error.empty())
      verifyCollectives();
    if (error.empty())
      verifyParameters();
    if (error.empty())
      verifyStates();
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

  /// Numbers of mesh axes, none twice.
  void axes(const std::vector<int> &list, const std::string &what) {
    for (int axis : list)
      index(axis, program.mesh.size(), false, what + ": axis");
    if (std::set<int>(list.begin(), list.end()).size() != list.size())
      fail(what + ": expected each axis once");
  }

  void division(const Division &division, const std::vector<int64_t> &shape,
                const std::string &what) {
    if (division.size() > shape.size())
      fail(what + ": expected at most " + std::to_string(shape.size()) +
           " dimensions, got " + std::to_string(division.size()));
    std::vector<int> all;
    for (const std::vector<int> &list : division)
      all.insert(all.end(), list.begin(), list.end());
    axes(all, what);
  }

  /// `inner` must divide what `outer` leaves, by minor axes.
  void follows(const Division &outer, const Division &inner,
               const std::string &what) {
    for (size_t d = 0; d < outer.size(); ++d) {
      const std::vector<int> none;
      const std::vector<int> &axes = d < inner.size() ? inner[d] : none;
      if (axes.size() < outer[d].size() ||
          !std::equal(outer[d].begin(), outer[d].end(), axes.begin()))
        fail(what + ": expected it to divide dimension " + std::to_string(d) +
             " further");
    }
  }

  void verifyCollectives() {
    for (size_t i = 0; i < program.collectives.size(); ++i) {
      const Collective &c = program.collectives[i];
      std::string what = "collective " + std::to_string(i);
      axes(c.axes, what);
      for (int64_t size :
           {c.outer, c.size, c.inner, c.splitOuter, c.splitSize, c.splitInner})
        if (size < 1)
          fail(what + ": expected sizes of at least 1, got " +
               std::to_string(size));
      if (!error.empty())
        return;
      int64_t ranks = groupSize(program.mesh, c.axes);
      if (c.kind == Collective::Kind::AllToAll &&
          (c.size % ranks != 0 || c.splitSize % ranks != 0))
        fail(what + ": expected sizes that " + std::to_string(ranks) +
             " ranks divide, got " + std::to_string(c.size) + " and " +
             std::to_string(c.splitSize));
      if (c.kind == Collective::Kind::Permute &&
          (c.order.size() != c.axes.size() ||
           !std::is_permutation(c.order.begin(), c.order.end(),
                                c.axes.begin())))
        fail(what + ": expected the same axes in another order");
    }
  }

  /// A parameter's collective of this kind, from and to tensors of these sizes.
  void collective(int number, Collective::Kind kind, ElementType type,
                  int64_t input, int64_t output, const std::string &what) {
    index(number, program.collectives.size(), true, what);
    if (number == -1 || !error.empty())
      return;
    const Collective &c = program.collectives[number];
    if (c.kind != kind)
      fail(what + ": collective " + std::to_string(number) +
           " is of another kind");
    if (c.type != type)
      fail(what + ": collective " + std::to_string(number) +
           " has another element type");
    expect(input, inputElements(c, program.mesh), what + ": input elements");
    expect(output, outputElements(c, program.mesh), what + ": output elements");
  }

  void verifyParameters() {
    for (const Parameter &p : program.parameters) {
      std::string what = "parameter '" + p.name + "'";
      index(p.updateTask, program.tasks.size(), true,
            "update task of '" + p.name + "'");
      index(p.squareTask, program.tasks.size(), true,
            "square task of '" + p.name + "'");
      for (int64_t size : p.shape)
        if (size < 1)
          fail(what + ": expected sizes of at least 1, got " +
               std::to_string(size));
      if (p.rows < 1)
        fail(what + ": expected at least 1 row, got " + std::to_string(p.rows));
      division(p.computeDivision, p.shape, what + ": compute division");
      division(p.storageDivision, p.shape, what + ": storage division");
      division(p.optimizerDivision, p.shape, what + ": optimizer division");
      follows(p.computeDivision, p.storageDivision,
              what + ": storage division");
      follows(p.storageDivision, p.optimizerDivision,
              what + ": optimizer division");
      if (error.empty())
        verifyTransfers(p, what);
    }
  }

  void verifyTransfers(const Parameter &p, const std::string &what) {
    using Kind = Collective::Kind;
    auto elements = [&](const Division &division) {
      return partElements(p.shape, division, program.mesh);
    };
    int64_t compute = elements(p.computeDivision);
    int64_t storage = elements(p.storageDivision);
    int64_t optimizer = elements(p.optimizerDivision);
    collective(p.unshard, Kind::AllGather, p.compute, storage, compute,
               what + ": unshard");
    collective(p.reduceGrad, Kind::ReduceScatter, ElementType::F32, compute,
               storage, what + ": reduceGrad");
    collective(p.refresh, Kind::AllGather, p.compute, optimizer, storage,
               what + ": refresh");
    bool cut = false; // to the optimizer's division
    for (int number : p.reduce) {
      index(number, program.collectives.size(), false, what + ": reduce");
      if (!error.empty())
        return;
      if (cut)
        fail(what + ": reduce: expected nothing behind the reduce-scatter or "
                    "slice");
      Kind kind = program.collectives[number].kind;
      cut = kind == Kind::ReduceScatter || kind == Kind::Slice;
      collective(number, cut ? kind : Kind::AllReduce, ElementType::F32,
                 storage, cut ? optimizer : storage, what + ": reduce");
    }
    if (optimizer != storage && !cut)
      fail(what + ": reduce: expected a reduce-scatter or slice from storage "
                  "to optimizer division");
    if (optimizer != storage && p.refresh < 0)
      fail(what + ": expected a refresh from optimizer to storage division");
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
    place(stage, update.master, 4 * optimizer, false, what + " master");
    place(stage, update.updated, size * optimizer, false, what + " updated");
    place(stage, update.stored, size * storage, false, what + " stored copy");
    place(stage, update.states, p.stateBytes, false, what + " states");
    place(stage, update.gradient, 4 * optimizer, false,
          what + " summed gradient");
    for (const ArenaPlace &g : update.gradients)
      place(g.stage, g.offset, 4 * storage, false, what + " gradient");
    for (const ArenaPlace &c : update.copies)
      place(c.stage, c.offset, size * storage, false, what + " copy");
    if (update.gradients.empty() || update.gradients[0].stage != stage)
      return fail(what + ": expected the first gradient accumulator on stage " +
                  std::to_string(stage));
    bool cut = !p.reduce.empty() && program.collectives[p.reduce.back()].kind !=
                                        Collective::Kind::AllReduce;
    if (!cut && update.gradient != update.gradients[0].offset)
      fail(what +
           ": expected the summed gradient at the first accumulator's "
           "offset " +
           std::to_string(update.gradients[0].offset) + ", got " +
           std::to_string(update.gradient));
    place(stage, program.stages[stage].step.squares, 4 * p.rows, false,
          what + " sums of squares");
    if (p.updateTask < 0 || p.squareTask < 0)
      fail(what + ": expected an update task and a square task");
  }

  /// States inside their block, and scalars of options that there are.
  void verifyStates() {
    for (const Parameter &p : program.parameters)
      for (const State &state : p.states)
        within(p.stateBytes, state.offset,
               byteSize(state.type) *
                   partElements(p.shape, p.optimizerDivision, program.mesh),
               false, "state '" + state.name + "' of '" + p.name + "'",
               "states");
    for (const Scalar &scalar : program.scalars) {
      bool isOfOption = scalar.kind != Scalar::Kind::LearningRate &&
                        scalar.kind != Scalar::Kind::GradientScale;
      if (isOfOption &&
          std::none_of(program.options.begin(), program.options.end(),
                       [&](const ProgramOption &option) {
                         return option.name == scalar.option;
                       }))
        fail("a scalar: expected one of the program's options, got '" +
             scalar.option + "'");
    }
  }

  /// Bytes of one rank's part of every microbatch.
  int64_t dataBytes(const DataForm &form, const std::string &what) {
    division(form.division, form.shape, what);
    if (form.shape.empty() || !error.empty())
      return 0;
    return program.microbatches * byteSize(form.type) *
           partElements(form.shape, form.division, program.mesh);
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

  void verifyStage(int stage) {
    const Stage &s = program.stages[stage];
    std::string what = "stage " + std::to_string(stage) + ": ";
    place(stage, s.inputData, dataBytes(program.input, "inputs"), true,
          what + "inputs");
    place(stage, s.targetData, dataBytes(program.target, "targets"), true,
          what + "targets");
    place(stage, s.loss, program.microbatches * 8, true, what + "losses");
    place(stage, s.logits, dataBytes(program.logits, "logits"), true,
          what + "logits");
    if (s.logits >= 0 && program.logits.shape.empty())
      fail(what + "expected a shape of the logits");
    verifyAuxiliary(stage, what);
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
      place(stage, offset.offset, 4, false, what + "shard offset");
    }
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

} // namespace

bool verify(const Program &program, std::string &error) {
  error.clear();
  if (!ProgramVerifier(program, error).run() || !verifyMessages(program, error))
    return false;
  std::vector<std::vector<double>> zeros;
  for (const Stage &stage : program.stages)
    zeros.emplace_back(stage.actions.size(), 0.0);
  Clock clock;
  return runClock(program, zeros, clock, error);
}

} // namespace rota
