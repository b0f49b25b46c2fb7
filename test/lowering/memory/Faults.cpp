// SPDX-License-Identifier: Apache-2.0
#include "test/lowering/memory/Faults.h"
#include "lowering/memory/ActionTemplates.h"
#include "lowering/memory/PlanVerifier.h"
#include "runtime/program/Verify.h"

#include <algorithm>
#include <utility>

using namespace rota::memory;

namespace rota::test {

ActionTemplate &ownTemplate(Stage &stage, int action) {
  ActionTemplate actionTemplate = stage.templateOf(action);
  auto fix = [&](SlotAddress &address) {
    address = SlotAddress(stage.resolve(action, address));
  };
  for (std::vector<Call> *calls :
       {&actionTemplate.calls, &actionTemplate.evalCalls})
    for (Call &call : *calls)
      std::for_each(call.frame.begin(), call.frame.end(), fix);
  for (Transfer &transfer : actionTemplate.transfers) {
    fix(transfer.source);
    fix(transfer.destination);
  }
  fix(actionTemplate.message);
  actionTemplate.slotCount = 0;
  stage.actions[action].templateNumber = int(stage.templates.size());
  stage.templates.push_back(std::move(actionTemplate));
  return stage.templates.back();
}

void dropWait(Stage &stage, int action, int wait) {
  PlannedAction &planned = stage.actions[action];
  std::span<const int> old = stage.waitsOf(action);
  std::vector<int> waits(old.begin(), old.end());
  waits.erase(waits.begin() + wait);
  planned.firstWait = int(stage.waits.size());
  planned.waitCount = int(waits.size());
  stage.waits.insert(stage.waits.end(), waits.begin(), waits.end());
}

namespace {

class Faults {
public:
  Faults(const ModelLayout &layout, const ChunkTable &chunks,
         const pipe::Timeline &timeline, Program program)
      : layout(layout), chunks(chunks), timeline(timeline),
        program(std::move(program)) {}

  FaultReport run() {
    place = "constants";
    count(program.constantTensors, "constant");
    for (ConstantTensor &tensor : program.constantTensors)
      step<int64_t>(tensor.offset, {64, -64, 4}, "offset");
    for (Stage &of : program.stages) {
      stage = &of;
      place =
          "stage " + std::to_string(&of - program.stages.data()) + ", start";
      changeStart();
      for (int a = 0; a < int(of.actions.size()); ++a) {
        place = describe(program, int(&of - program.stages.data()), a);
        changeSlots(a);
        changeWaits(a);
        PlannedAction planned = of.actions[a];
        changeAction(of.actions[a], ownTemplate(of, a));
        of.actions[a] = planned;
        of.templates.pop_back();
      }
    }
    return report;
  }

private:
  /// The plan, as it stands, must be refused.
  void judge(const std::string &what) {
    ++report.tried;
    std::string error;
    if (verifyPlan(layout, chunks, timeline, program, error))
      report.accepted.push_back(place + ": " + what);
  }

  template <typename T> void set(T &field, T value, const std::string &what) {
    if (field == value)
      return;
    T old = std::exchange(field, value);
    judge(what + " " + std::to_string(value) + ", not " + std::to_string(old));
    field = old;
  }

  template <typename T>
  void step(T &field, std::initializer_list<T> steps, const std::string &what) {
    for (T by : steps)
      set(field, T(field + by), what);
  }

  void offset(int64_t &field, const std::string &what) {
    if (field < 0) {
      set<int64_t>(field, 0, what);
      set<int64_t>(field, stage->regions.back().offset, what);
      return;
    }
    step<int64_t>(field, {64, -64, 4096, 4}, what);
    set<int64_t>(field, -1, what);
  }

  /// Leaves each element out, and has each twice.
  template <typename T>
  void count(std::vector<T> &list, const std::string &what) {
    for (size_t i = 0; i < list.size(); ++i) {
      std::vector<T> old = list;
      list.erase(list.begin() + i);
      judge("without " + what + " " + std::to_string(i));
      list = old;
      list.insert(list.begin() + i, list[i]);
      judge("with " + what + " " + std::to_string(i) + " twice");
      list = std::move(old);
    }
  }

  void changeCalls(std::vector<Call> &calls, const std::string &what) {
    count(calls, what);
    for (size_t i = 0; i < calls.size(); ++i) {
      std::string which = what + " " + std::to_string(i);
      step(calls[i].task, {1, -1}, which + ": task");
      step<int64_t>(calls[i].layer, {1, -1}, which + ": layer");
      for (int field = 0; field < kFrameFields; ++field)
        offset(calls[i].frame[field].offset,
               which + ": field " + std::to_string(field));
    }
  }

  void changeAction(PlannedAction &action, ActionTemplate &actionTemplate) {
    step(action.microbatch, {1, -1}, "microbatch");
    step(actionTemplate.chunk, {1, -1}, "chunk");
    set(actionTemplate.startsPair, !actionTemplate.startsPair,
        "start of a pair");
    if (isMessage(actionTemplate.kind)) {
      step(actionTemplate.peer, {1, -1}, "peer");
      step<int64_t>(actionTemplate.bytes, {4, -4, 64}, "bytes");
      offset(actionTemplate.message.offset, "message");
    }
    changeCalls(actionTemplate.calls, "call");
    changeCalls(actionTemplate.evalCalls, "evaluation's call");
    count(actionTemplate.transfers, "transfer");
    for (Transfer &t : actionTemplate.transfers) {
      step(t.collective, {1, -1}, "collective");
      offset(t.source.offset, "source");
      offset(t.destination.offset, "destination");
      step<int64_t>(t.bytes, {4, 64, -64}, "bytes of a transfer");
    }
    count(actionTemplate.clears, "clear");
    for (Clear &c : actionTemplate.clears) {
      offset(c.offset, "clear");
      step<int64_t>(c.bytes, {4, 64, -64}, "bytes of a clear");
    }
  }

  /// Without those of cotangents that no other action sees: such a block may
  /// move.
  void changeSlots(int a) {
    int count = std::min<int>(stage->templateOf(a).slotCount, CotangentSlot);
    for (int i = 0; i < count; ++i)
      if (isUsed(stage->templateOf(a), i))
        offset(stage->slots[stage->actions[a].firstSlot + i],
               "slot " + std::to_string(i));
  }

  static bool isUsed(const ActionTemplate &actionTemplate, int slot) {
    bool used = actionTemplate.message.slot == slot;
    for (const Transfer &t : actionTemplate.transfers)
      used |= t.source.slot == slot || t.destination.slot == slot;
    for (const std::vector<Call> *calls :
         {&actionTemplate.calls, &actionTemplate.evalCalls})
      for (const Call &call : *calls)
        for (const SlotAddress &address : call.frame)
          used |= address.slot == slot;
    return used;
  }

  /// Without each wait, and with the latest other asynchronous actions in its
  /// place.
  void changeWaits(int a) {
    PlannedAction planned = stage->actions[a];
    for (int i = 0; i < planned.waitCount; ++i) {
      dropWait(*stage, a, i);
      judge("without wait " + std::to_string(i));
      stage->actions[a] = planned;
      for (int other = a, left = 3; other-- > 0 && left > 0;)
        if (isAsynchronous(stage->kindOf(other))) {
          set(stage->waits[planned.firstWait + i], other, "wait");
          --left;
        }
    }
  }

  void changeStart() {
    changeCalls(stage->startCalls, "start call");
    count(stage->startMicrobatches, "microbatch");
    for (int &microbatch : stage->startMicrobatches)
      step(microbatch, {1, -1}, "microbatch");
  }

  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Timeline &timeline;
  Program program;
  Stage *stage = nullptr;
  std::string place;
  FaultReport report;
};

} // namespace

FaultReport tryFaults(const ModelLayout &layout, const ChunkTable &chunks,
                      const pipe::Timeline &timeline, Program program) {
  return Faults(layout, chunks, timeline, std::move(program)).run();
}

} // namespace rota::test
