// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/ActionWork.h"
#include "runtime/Error.h"

#include <bit>
#include <fmt/format.h>

namespace rota {

ActionWork::ActionWork(Rank &rank, ActionTimes &times)
    : rank(rank), times(times) {
  auto actions = static_cast<int>(rank.stage().actions.size());
  for (int a = 0; a < actions && !pairThread; ++a)
    if (runsAtOnce(a) && !rank.device().isAsynchronous())
      pairThread = std::make_unique<PairThread>();
}

std::span<const Call> ActionWork::callsOf(const ActionTemplate &form,
                                          RunMode mode) const {
  if (mode == RunMode::Train)
    return form.calls;
  std::span<const Call> calls = form.evalCalls;
  const Program &program = rank.program();
  if (isForward(form.kind) || !program.samples || calls.empty())
    return calls;
  auto losses = static_cast<size_t>(program.lossCalls);
  if (mode == RunMode::Evaluate)
    return calls.first(losses);
  return calls.subspan(losses + static_cast<size_t>(sampledBlock), 1);
}

bool ActionWork::runsAtOnce(int number) const {
  return rank.stage().templateOf(number).startsPair && !rank.profile();
}

void ActionWork::run(int number, RunMode mode, KeptCore &core) {
  const ActionTemplate &form = rank.stage().templateOf(number);
  if (callsOf(form, mode).empty() &&
      (mode != RunMode::Train || form.clears.empty()))
    return;
  core.take();
  rank.flight().add(FlightEvent::ActionBegin, number);
  Done done = work(number, mode, rank.context());
  checkFailed(done, rank.context());
  times.add(done.span);
  rank.flight().add(FlightEvent::ActionEnd, number);
}

void ActionWork::runPair(int number) {
  Done halves[2];
  for (int half : {0, 1})
    rank.flight().add(FlightEvent::ActionBegin, number + half);
  auto run = [&](int half, RotaContext *context) {
    ComputeToken token(rank.cores());
    halves[half] = work(number + half, RunMode::Train, context);
  };
  auto first = [&] { run(0, rank.context()); };
  auto second = [&] { run(1, rank.pairContext()); };
  if (pairThread)
    pairThread->run(second, first);
  else
    rank.device().runBeside(first, second);
  checkFailed(halves[0], rank.context());
  checkFailed(halves[1], rank.pairContext());
  times.add(halves[0].span);
  times.add(halves[1].span);
  for (int half : {1, 0}) // as begins and ends of a lane nest
    rank.flight().add(FlightEvent::ActionEnd, number + half);
}

/// The action's clears and calls, up to one that fails; the caller has a core.
ActionWork::Done ActionWork::work(int number, RunMode mode,
                                  RotaContext *context) {
  const Stage &stage = rank.stage();
  const ActionTemplate &form = stage.templateOf(number);
  Done done{{number, times.mark(), 0}};
  if (mode == RunMode::Train)
    for (const Clear &clear : form.clears)
      rank.device().zero(context, rank.at(clear.offset), clear.bytes);
  for (const Call &call : callsOf(form, mode)) {
    rank.device().setCall(number, call.layer);
    runCall(rank, context, call, stage.slotsOf(number),
            stage.actions[number].microbatch);
    if (context->failed) {
      done.failed = &call;
      return done;
    }
  }
  done.span.end = times.mark();
  return done;
}

void runCall(Rank &rank, RotaContext *context, const Call &call,
             std::span<const int64_t> slots, int microbatch) {
  // The frame is the call's offsets, turned into pointers.
  FrameOffsets offsets = frameOf(call, slots, microbatch);
  std::array<void *, kFrameFields> pointers;
  for (int i = 0; i < kFrameFields; ++i)
    pointers[i] = rank.at(offsets[i]);
  rank.runTask(context, call.task, std::bit_cast<RotaFrame>(pointers));
}

/// Throws the failure of the action's work, if there is one. A device that
/// works on its own fails in some call before the one after which it shows.
void ActionWork::checkFailed(const Done &done, RotaContext *context) {
  if (!context->failed)
    return;
  rank.rethrowFailure();
  std::string text = context->failure;
  if (done.failed && !rank.device().isAsynchronous())
    text = atLayer(done.failed->layer, text);
  throw RunError(rank.explain(text, done.span.action));
}

} // namespace rota
