// SPDX-License-Identifier: Apache-2.0
//
// Bounds of a stage's actions. A template is checked once, for all microbatches
// and any slots; then each action costs only its slots and waits.
#include "runtime/program/Checks.h"
#include "runtime/program/Part.h"
#include "runtime/program/Verify.h"

#include <algorithm>

namespace rota {
namespace {

/// Seconds of an action; sums of them stay finite.
constexpr double kLongestEstimate = 1e30;

class ActionVerifier : Checks {
public:
  ActionVerifier(const Program &program, int number, std::string &error)
      : Checks(program, error), number(number), stage(program.stages[number]),
        needs(stage.templates.size()) {}

  bool run() {
    verifyStart();
    for (size_t a = 0; a < stage.actions.size() && error.empty(); ++a)
      verifyAction(static_cast<int>(a));
    return error.empty();
  }

private:
  /// The requirements of a template's addresses for one of its slots.
  struct SlotNeed {
    bool isRequired = false; // it must not be empty
    // From its offset on, in the arena and in the host arena; -1: no address
    // refers to it there.
    int64_t bytes = -1, hostBytes = -1;
    int64_t &in(bool host) { return host ? hostBytes : bytes; }
  };
  struct TemplateNeed {
    bool isKnown = false;
    std::vector<SlotNeed> slots;
  };

  void verifyStart() {
    std::vector<SlotNeed> none;
    for (const Call &call : stage.startCalls)
      verifyCall(call, none);
    for (int microbatch : stage.startMicrobatches)
      index(microbatch, static_cast<size_t>(program.microbatches), false,
            ": microbatch");
    if (!stage.startCalls.empty() && stage.loss < 0)
      fail(": expected a place of the losses");
    if (!error.empty())
      error = "stage " + std::to_string(number) + error;
  }

  /// `bytes` at an address, in all microbatches.
  void address(const SlotAddress &at, int64_t bytes, bool optional, bool host,
               std::vector<SlotNeed> &slots, const std::string &what) {
    int64_t arena = host ? stage.hostBytes : stage.arenaBytes;
    const char *which = host ? "host arena" : "arena";
    if (optional && at.isNone())
      return;
    within(arena, at.offset, bytes, false, what, which);
    int64_t last = program.microbatches - 1;
    if (at.stride < 0 || (last > 0 && at.stride > arena / last))
      fail(what + ": expected a stride of at most " +
           std::to_string(arena / std::max<int64_t>(1, last)) + ", got " +
           std::to_string(at.stride));
    if (!error.empty())
      return;
    int64_t end = at.offset + at.stride * last;
    if (at.slot < 0)
      return within(arena, end, bytes, false, what, which);
    if (at.slot >= static_cast<int>(slots.size()))
      return index(at.slot, slots.size(), false, what + ": slot");
    SlotNeed &need = slots[at.slot];
    need.isRequired |= !optional;
    need.in(host) = std::max(need.in(host), end + bytes);
  }

  void verifyCall(const Call &call, std::vector<SlotNeed> &slots) {
    index(call.task, program.tasks.size(), false, ": task");
    if (call.layer < -1)
      fail(": expected the number of a layer or -1, got " +
           std::to_string(call.layer));
    for (const SlotAddress &at : call.frame)
      address(at, 0, true, false, slots, ": frame");
  }

  void verifyTransfer(ActionKind kind, const Transfer &t,
                      std::vector<SlotNeed> &slots) {
    if (kind == ActionKind::Offload || kind == ActionKind::Fetch) {
      bool out = kind == ActionKind::Offload;
      address(t.source, t.bytes, false, !out, slots, ": source");
      return address(t.destination, t.bytes, false, out, slots,
                     ": destination");
    }
    index(t.collective, program.collectives.size(), false, ": collective");
    if (!error.empty())
      return;
    const Collective &c = program.collectives[t.collective];
    int64_t size = byteSize(c.type);
    address(t.source, size * inputElements(c, program.mesh), false, false,
            slots, ": source");
    address(t.destination, size * outputElements(c, program.mesh), false, false,
            slots, ": destination");
  }

  /// A tensor that SUM_GRAD or REFRESH exchanges has one place on one stage.
  void verifyUpdate(const ActionTemplate &form, int update) {
    index(update, stage.updates.size(), false, ": update");
    if (!error.empty())
      return;
    const Update &u = stage.updates[update];
    const Parameter &p = program.parameters[u.parameter];
    if (form.kind == ActionKind::SumGrad) {
      index(form.round, p.reduce.size(), false, ": round of '" + p.name + "'");
      if (u.gradients.size() != 1)
        fail(": expected one accumulator of '" + p.name + "', got " +
             std::to_string(u.gradients.size()));
    } else if (p.refresh < 0 || !u.copies.empty()) {
      fail(": expected '" + p.name +
           "' to be gathered after its update, and no copies on other stages");
    }
  }

  /// An error says what is wrong, for the caller to put an action in front.
  void verifyTemplate(const ActionTemplate &actionTemplate,
                      std::vector<SlotNeed> &slots) {
    slots.resize(actionTemplate.slotCount);
    if (!(actionTemplate.estimate >= 0.0 &&
          actionTemplate.estimate <= kLongestEstimate))
      fail(": expected an estimate from 0 to " +
           std::to_string(kLongestEstimate) + " seconds, got " +
           std::to_string(actionTemplate.estimate));
    if (!(actionTemplate.slowsWork >= 0.0 && actionTemplate.slowsWork <= 1.0))
      fail(": expected a share of speed from 0 to 1, got " +
           std::to_string(actionTemplate.slowsWork));
    if (isSend(actionTemplate.kind) || isReceive(actionTemplate.kind)) {
      index(actionTemplate.peer, program.stages.size(), false, ": peer");
      address(actionTemplate.message, actionTemplate.bytes, false, false, slots,
              ": message");
    }
    if (!actionTemplate.transfers.empty() && !isTransfer(actionTemplate.kind))
      fail(": expected no transfers");
    for (const Transfer &transfer : actionTemplate.transfers)
      verifyTransfer(actionTemplate.kind, transfer, slots);
    bool exchanges = actionTemplate.kind == ActionKind::SumGrad ||
                     actionTemplate.kind == ActionKind::Refresh;
    if (!(exchanges ? actionTemplate.transfers.empty()
                    : actionTemplate.updates.empty()))
      fail(": expected updates in SUM_GRAD and REFRESH alone, and no others "
           "of its transfers");
    for (int update : actionTemplate.updates)
      verifyUpdate(actionTemplate, update);
    for (const Clear &clear : actionTemplate.clears)
      place(number, clear.offset, clear.bytes, false, ": clear");
    for (const Call &call : actionTemplate.calls)
      verifyCall(call, slots);
    for (const Call &call : actionTemplate.evalCalls)
      verifyCall(call, slots);
    if (program.samples && isCompute(actionTemplate.kind) &&
        !isForward(actionTemplate.kind) && !actionTemplate.evalCalls.empty())
      expect(2 * program.lossCalls,
             static_cast<int64_t>(actionTemplate.evalCalls.size()),
             ": calls of the loss and of logits");
  }

  /// Whether the action names a template, slots and waits that are there.
  bool hasParts(int a) {
    const PlannedAction &action = stage.actions[a];
    auto isRange = [](int first, int count, size_t size) {
      return first >= 0 && count >= 0 &&
             int64_t(first) + count <= static_cast<int64_t>(size);
    };
    index(action.templateNumber, stage.templates.size(), false, ": template");
    index(action.microbatch, static_cast<size_t>(program.microbatches), false,
          ": microbatch");
    if (error.empty() &&
        !isRange(action.firstSlot,
                 stage.templates[action.templateNumber].slotCount,
                 stage.slots.size()))
      fail(": expected slots among the stage's " +
           std::to_string(stage.slots.size()));
    if (!isRange(action.firstWait, action.waitCount, stage.waits.size()))
      fail(": expected waits among the stage's " +
           std::to_string(stage.waits.size()));
    if (error.empty())
      return true;
    error = "stage " + std::to_string(number) + ": action " +
            std::to_string(a) + error;
    return false;
  }

  void verifyAction(int a) {
    if (!hasParts(a))
      return;
    TemplateNeed &need = needs[stage.actions[a].templateNumber];
    if (!need.isKnown)
      verifyTemplate(stage.templateOf(a), need.slots);
    need.isKnown = true;
    if (!error.empty())
      error = describe(program, number, a) + error;
    std::span<const int64_t> slots = stage.slotsOf(a);
    for (size_t i = 0; i < slots.size() && error.empty(); ++i)
      if (!fits(slots[i], need.slots[i]))
        reject(a, static_cast<int>(i), slots[i], need.slots[i]);
    if (error.empty() && stage.templateOf(a).startsPair)
      verifyPair(a);
    for (int wait : stage.waitsOf(a))
      if (wait < 0 || wait >= a || !isAsynchronous(stage.kindOf(wait)))
        fail(describe(program, number, a) +
             ": expected to wait for an earlier send, receive or transfer, "
             "got action " +
             std::to_string(wait));
  }

  /// The other half stands after the action and waits for nothing itself.
  void verifyPair(int a) {
    auto other = static_cast<size_t>(a) + 1;
    if (other == stage.actions.size() || !hasParts(a + 1) ||
        !canPair(stage.kindOf(a), stage.kindOf(a + 1)) ||
        stage.templateOf(a + 1).startsPair)
      return fail(describe(program, number, a) +
                  ": expected a pair of an F and a B or I");
    if (!stage.waitsOf(a + 1).empty())
      fail(describe(program, number, a + 1) +
           ": expected the first half of its pair to wait");
  }

  bool fits(int64_t offset, const SlotNeed &need) const {
    if (offset == -1)
      return !need.isRequired;
    return offset >= 0 &&
           (need.bytes < 0 || offset <= stage.arenaBytes - need.bytes) &&
           (need.hostBytes < 0 || offset <= stage.hostBytes - need.hostBytes);
  }

  void reject(int action, int slot, int64_t offset, const SlotNeed &need) {
    std::string what =
        describe(program, number, action) + ": slot " + std::to_string(slot);
    if (need.hostBytes >= 0)
      within(stage.hostBytes, offset, need.hostBytes, false, what,
             "host arena");
    within(stage.arenaBytes, offset, std::max<int64_t>(0, need.bytes), false,
           what);
  }

  int number;
  const Stage &stage;
  std::vector<TemplateNeed> needs;
};

} // namespace

bool verifyActions(const Program &program, int stage, std::string &error) {
  return ActionVerifier(program, stage, error).run();
}

} // namespace rota
