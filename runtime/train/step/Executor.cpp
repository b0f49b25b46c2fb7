// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Executor.h"
#include "runtime/program/Verify.h"
#include "runtime/train/step/Observed.h"

#include <fmt/format.h>
#include <utility>

namespace rota {

Executor::Executor(Rank &rank, int64_t tracedRuns)
    : rank(rank), stage(rank.stage()),
      actionCount(static_cast<int>(stage.actions.size())),
      marks(findMarks(rank.program(), rank.stageNumber())),
      actionTimes(rank, tracedRuns), work(rank, actionTimes),
      transfers(rank, actionTimes), cotangents(rank) {
  auto texts = std::make_shared<std::vector<std::string>>();
  for (int a = 0; a < actionCount; ++a) {
    int peer = stage.templateOf(a).peer;
    texts->push_back(fmt::format(
        "stage {}, {}", rank.stageNumber(),
        describe(stage, a,
                 fmt::format("rank {}", peer < 0 ? -1 : rank.peer(peer)))));
  }
  texts->push_back("optimizer"); // Rank::positionOfOptimizer
  positions = std::move(texts);
  rank.setPositions(positions);
}

void Executor::run(Mode runMode, const RunHooks &hooks) {
  mode = runMode;
  const Program &program = rank.program();
  if (hasMeans(program) &&
      (mode == Mode::Evaluate || program.accumulationSteps == 1)) {
    observe(/*accumulationStep=*/0);
    writeMeans(rank, /*accumulationSteps=*/1);
  }
  actionTimes.beginRun(mode == Mode::Train);
  walk(hooks);
  actionTimes.endRun();
}

void Executor::sample(int64_t block) {
  mode = Mode::Sample;
  work.setSampledBlock(block);
  actionTimes.beginRun(/*trains=*/false);
  walk({});
  actionTimes.endRun();
}

void Executor::record() {
  mode = Mode::Train;
  isUpdated = true;
  walk({});
}

void Executor::walk(const RunHooks &hooks) {
  const Program &program = rank.program();
  bool trains = mode == Mode::Train;
  endsStep = hooks.endsStep;
  KeptCore core(rank.cores());
  auto call = [&](const std::function<void()> &hook) {
    core.release();
    if (hook)
      hook();
  };
  auto findCotangents = [&] {
    core.release();
    cotangents.find();
  };
  if (trains && program.accumulationSteps == 1 &&
      !program.auxiliaryLosses.empty())
    cotangents.startWeights(0);
  for (int a = 0; a < actionCount; ++a) {
    await(a, core);
    bool isPair = trains && work.runsAtOnce(a);
    int last = a + isPair;
    auto comes = [&](int mark) { return a <= mark && mark <= last; };
    if (comes(marks.firstUse))
      call(hooks.beforeUse);
    if (trains && comes(marks.firstGradient))
      findCotangents();
    if (isPair) {
      core.release(); // each half takes one
      work.runPair(a);
    } else {
      act(a, core);
    }
    if (comes(marks.lastLoss) && !observes) {
      findCotangents(); // these weights and the losses have one place
      call(hooks.lossesKnown);
    }
    a = last;
  }
  for (int a = 0; a < actionCount; ++a)
    transfers.finish(a, core);
  isUpdated = trains && endsStep;
}

/// Waits for the transfers that an action needs.
void Executor::await(int number, KeptCore &core) {
  rank.setPosition((*positions)[number]);
  rank.device().setPosition(number);
  // Messages first: a transfer that ends meanwhile is not exposed.
  for (bool isTransferTurn : {false, true})
    for (int wait : stage.waitsOf(number))
      if (isTransfer(stage.kindOf(wait)) == isTransferTurn)
        transfers.finish(wait, core);
}

/// Does or starts what the mode has of an action.
void Executor::act(int number, KeptCore &core) {
  ActionKind kind = stage.kindOf(number);
  if (mode == Mode::Sample && stage.actions[number].microbatch > 0 &&
      (isCompute(kind) || isMessage(kind)))
    return;
  if (!isCompute(kind)) {
    if (happens(kind))
      transfers.start(number);
  } else if (!observes || isForward(kind)) {
    work.run(number, mode, core);
  }
}

void Executor::prepare(FunctionRef<void(int64_t accumulationStep)> load) {
  const Program &program = rank.program();
  bool averages = hasMeans(program), weighs = !program.auxiliaryLosses.empty();
  if (program.accumulationSteps == 1 || !(averages || weighs))
    return;
  for (int64_t accumulationStep = 0;
       accumulationStep < program.accumulationSteps; ++accumulationStep) {
    load(accumulationStep);
    if (weighs)
      cotangents.startWeights(accumulationStep);
    if (averages)
      observe(accumulationStep);
  }
  if (averages)
    writeMeans(rank, program.accumulationSteps);
}

/// Runs the forwards of an accumulation step for the tables that they leave,
/// which are the same when they run again.
void Executor::observe(int64_t accumulationStep) {
  Mode next = std::exchange(mode, Mode::Evaluate);
  observes = true;
  walk({});
  observes = false;
  mode = next;
  startTables(rank, accumulationStep);
}

/// An evaluation has no gradients, keeps nothing for a backward, and reads
/// nothing back.
bool Executor::happens(ActionKind kind) const {
  if (kind == ActionKind::Refresh)
    return isUpdated;
  if (kind == ActionKind::SumGrad && !endsStep)
    return false;
  return mode == Mode::Train || kind == ActionKind::Unshard ||
         (isMessage(kind) && isForward(kind));
}

} // namespace rota
