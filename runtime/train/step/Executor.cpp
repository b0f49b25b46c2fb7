// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Executor.h"
#include "runtime/Error.h"
#include "runtime/program/Verify.h"
#include "runtime/train/step/Gather.h"
#include "runtime/train/step/Observed.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace rota {

/// A time that never comes: the rank has not waited.
static constexpr double kNever = 1e300;

Executor::Executor(Rank &rank, int64_t tracedRuns)
    : rank(rank), stage(rank.stage()),
      actionCount(static_cast<int>(stage.actions.size())),
      tracedRuns(tracedRuns), weights(rank), requests(stage.actions.size()),
      seconds(stage.actions.size(), 0.0), firstSeconds(seconds) {
  findMarks();
  writeCotangentFactors();
  if (tracedRuns > 0)
    decideTogether(rank, {true}); // no rank returns before all are here
  transferOrigin = rank.communicator().now();
  computeOrigin = rank.device().secondsAt(rank.device().mark());
  auto texts = std::make_shared<std::vector<std::string>>();
  for (int a = 0; a < actionCount; ++a) {
    const ActionTemplate &actionTemplate = stage.templateOf(a);
    peers.push_back(actionTemplate.peer < 0 ? -1
                                            : rank.peer(actionTemplate.peer));
    texts->push_back(
        fmt::format("stage {}, {}", rank.stageNumber(),
                    describe(stage, a, fmt::format("rank {}", peers.back()))));
    requests[a].reserve(actionTemplate.transfers.size() + 1);
    if (runsAtOnce(a) && !pairThread)
      pairThread = std::make_unique<PairThread>();
  }
  texts->push_back("optimizer"); // Rank::positionOfOptimizer
  positions = std::move(texts);
  rank.setPositions(positions);
}

/// Whether a training run of these calls writes losses, auxiliary sums or
/// tables, which a backward reads at most.
static bool writesLosses(const ActionTemplate &actionTemplate) {
  bool isForward = actionTemplate.kind == ActionKind::Forward;
  if (!isForward && !makesInputGradient(actionTemplate.kind))
    return false;
  std::vector<size_t> fields = {offsetof(RotaFrame, loss),
                                offsetof(RotaFrame, auxiliary)};
  if (isForward)
    fields.push_back(offsetof(RotaFrame, observed));
  return std::any_of(actionTemplate.calls.begin(), actionTemplate.calls.end(),
                     [&](const Call &c) {
                       return std::any_of(
                           fields.begin(), fields.end(), [&](size_t field) {
                             return !c.frame[field / sizeof(void *)].isNone();
                           });
                     });
}

void Executor::findMarks() {
  std::set<int64_t> received; // copies of other stages' tensors
  const std::vector<Stage> &stages = rank.program().stages;
  for (int owner = 0; owner < static_cast<int>(stages.size()); ++owner)
    for (const Update &update : stages[owner].updates)
      for (const ArenaAddress &copy : update.copies)
        if (owner != rank.stageNumber() && copy.stage == rank.stageNumber())
          received.insert(copy.offset);
  firstUse = firstGradient = lastLoss = actionCount;
  for (int a = actionCount - 1; a >= 0; --a) {
    const ActionTemplate &actionTemplate = stage.templateOf(a);
    bool readsReceived =
        actionTemplate.kind == ActionKind::Unshard &&
        std::any_of(actionTemplate.transfers.begin(),
                    actionTemplate.transfers.end(), [&](auto &t) {
                      return received.count(stage.resolve(a, t.source));
                    });
    if (isCompute(actionTemplate.kind) || readsReceived)
      firstUse = a;
    if (makesGradient(actionTemplate.kind) ||
        makesInputGradient(actionTemplate.kind))
      firstGradient = a;
    if (lastLoss == actionCount && writesLosses(actionTemplate))
      lastLoss = a;
  }
  // Without losses of its own the rank need not wait for anything but, in the
  // same places, the weights.
  if (lastLoss == actionCount)
    lastLoss = rank.program().auxiliaryLosses.empty()
                   ? 0
                   : std::min(firstGradient, actionCount - 1);
}

void Executor::run(Mode runMode, const RunHooks &hooks) {
  mode = runMode;
  const Program &program = rank.program();
  if (hasMeans(program) &&
      (mode == Mode::Evaluate || program.accumulationSteps == 1)) {
    observe(/*accumulationStep=*/0);
    writeMeans(rank, /*accumulationSteps=*/1);
  }
  measures = true;
  current = {false, mode == Mode::Train, runs, {}};
  walk(hooks);
  settle();
  previous = std::move(current);
  ++runs;
}

void Executor::record() {
  mode = Mode::Train;
  measures = false;
  walk({});
}

void Executor::walk(const RunHooks &hooks) {
  const Program &program = rank.program();
  bool trains = mode == Mode::Train;
  auto call = [](const std::function<void()> &hook) {
    if (hook)
      hook();
  };
  if (trains && program.accumulationSteps == 1 &&
      !program.auxiliaryLosses.empty())
    startWeights(0);
  for (int a = 0; a < actionCount; ++a) {
    rank.setPosition((*positions)[a]);
    rank.device().setPosition(a);
    // Messages first: a transfer that ends meanwhile is not exposed.
    for (bool transfers : {false, true})
      for (int wait : stage.waitsOf(a))
        if (isTransfer(stage.kindOf(wait)) == transfers)
          finish(wait);
    bool isPair = trains && runsAtOnce(a);
    int last = a + isPair;
    auto comes = [&](int mark) { return a <= mark && mark <= last; };
    if (comes(firstUse))
      call(hooks.beforeUse);
    if (trains && comes(firstGradient))
      findCotangents();
    if (isPair)
      computePair(a);
    else if (isCompute(stage.kindOf(a)))
      compute(a);
    else if (happens(stage.kindOf(a)))
      start(a);
    if (comes(lastLoss) && !observes) {
      findCotangents(); // these weights and the losses have one place
      call(hooks.lossesKnown);
    }
    a = last;
  }
  for (int a = 0; a < actionCount; ++a)
    finish(a);
}

void Executor::settle() {
  Device &device = rank.device();
  if (std::exchange(previous.isKnown, true))
    return;
  double lastBegin = 0.0, lastEnd = 0.0; // of the span before
  for (const Span &span : previous.spans) {
    double begin = device.secondsAt(span.begin);
    double end = device.secondsAt(span.end);
    // Of a pair, time in which both halves ran counts for the first.
    double shared = std::min(end, lastEnd) - std::max(begin, lastBegin);
    if (previous.training)
      seconds[span.action] += end - begin - std::max(0.0, shared);
    lastBegin = begin;
    lastEnd = end;
    if (previous.number < tracedRuns)
      recorded.push_back({rank.number(), rank.stageNumber(), span.action,
                          static_cast<int>(previous.number), previous.training,
                          begin - computeOrigin, end - computeOrigin});
  }
  if (previous.training && ++trainingRuns == 1)
    firstSeconds =
        std::exchange(seconds, std::vector<double>(seconds.size(), 0.0));
  if (rank.profile())
    rank.profile()->settle(device);
  if (!previous.spans.empty())
    device.forget(previous.spans.back().end);
}

const std::vector<TraceEvent> &Executor::events() {
  settle();
  return recorded;
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
      startWeights(accumulationStep);
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
  measures = false;
  observes = true;
  walk({});
  observes = false;
  mode = next;
  startTables(rank, accumulationStep);
}

/// Finds the weight of the main loss in an accumulation step and starts
/// bringing it to all ranks. A host that is ahead of its device does not wait
/// for it anyway.
void Executor::startWeights(int64_t accumulationStep) {
  rank.setPosition("weight of the loss");
  {
    ComputeToken token(rank.cores());
    for (int microbatch : stage.startMicrobatches)
      for (const Call &c : stage.startCalls) {
        call(rank.context(), c, {}, microbatch);
        if (!rank.context()->failed)
          continue;
        rank.rethrowFailure();
        throw RunError(fmt::format("rank {}: stage {}, weight of the loss: {}",
                                   rank.number(), rank.stageNumber(),
                                   rank.context()->failure));
      }
  }
  weights.startWeights(accumulationStep);
  cotangentsOpen = true;
  if (rank.device().isAsynchronous() &&
      accumulationStep + 1 == rank.program().accumulationSteps)
    findCotangents();
}

/// Makes the cotangents out of the main loss's weight over the step, if that
/// was not done yet: once a step.
void Executor::findCotangents() {
  if (!std::exchange(cotangentsOpen, false))
    return;
  weights.wait();
  if (stage.auxiliaryCotangents < 0)
    return;
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  rank.device().findCotangents(
      {stepLosses(rank),
       static_cast<const double *>(rank.runtimeAt(places.cotangentFactors)),
       static_cast<int64_t>(program.auxiliaryLosses.size()),
       static_cast<float *>(rank.at(stage.auxiliaryCotangents))});
}

/// Numbers that the weight of the loss is multiplied with and divided by.
void Executor::writeCotangentFactors() {
  const Program &program = rank.program();
  std::vector<double> factors;
  for (const AuxiliaryLoss &loss : program.auxiliaryLosses) {
    factors.push_back(loss.coefficient);
    factors.push_back(loss.weight *
                      static_cast<double>(program.stepMicrobatches()));
  }
  rank.device().write(factors.data(),
                      rank.runtimeAt(rank.places().cotangentFactors),
                      static_cast<int64_t>(8 * factors.size()));
}

/// An evaluation has no gradients, keeps nothing for a backward, and reads
/// nothing back.
bool Executor::happens(ActionKind kind) const {
  return mode == Mode::Train || kind == ActionKind::Unshard ||
         (isMessage(kind) && isForward(kind));
}

const std::vector<Call> &Executor::callsOf(int number) const {
  const ActionTemplate &actionTemplate = stage.templateOf(number);
  return mode == Mode::Train ? actionTemplate.calls : actionTemplate.evalCalls;
}

/// Whether the action and the one behind it run at the same time in training. A
/// GPU takes the work of one thread, and a profile has one writer. All ranks of
/// a stage decide alike.
bool Executor::runsAtOnce(int number) const {
  return stage.templateOf(number).startsPair && !rank.profile() &&
         !rank.device().isAsynchronous();
}

void Executor::compute(int number) {
  if (callsOf(number).empty() &&
      (mode != Mode::Train || stage.templateOf(number).clears.empty()))
    return;
  if (observes && !isForward(stage.kindOf(number)))
    return;
  ComputeToken token(rank.cores());
  rank.flight().add(FlightEvent::ActionBegin, number);
  Work done = work(number, rank.context());
  checkFailed(done, rank.context());
  if (measures)
    current.spans.push_back(done.span);
  rank.flight().add(FlightEvent::ActionEnd, number);
}

/// Runs both halves of the pair whose first half is action `number`, each with
/// a core of its own. Where no second one is free, the halves take turns: one
/// runs when the other has ended, or waits for a collective.
void Executor::computePair(int number) {
  Work halves[2];
  for (int half : {0, 1})
    rank.flight().add(FlightEvent::ActionBegin, number + half);
  auto run = [&](int half, RotaContext *context) {
    ComputeToken token(rank.cores());
    halves[half] = work(number + half, context);
  };
  pairThread->run([&] { run(1, rank.pairContext()); },
                  [&] { run(0, rank.context()); });
  checkFailed(halves[0], rank.context());
  checkFailed(halves[1], rank.pairContext());
  if (measures)
    current.spans.insert(current.spans.end(), {halves[0].span, halves[1].span});
  for (int half : {1, 0}) // as begins and ends of a lane nest
    rank.flight().add(FlightEvent::ActionEnd, number + half);
}

/// The action's clears and calls, up to one that fails; the caller has a core.
Executor::Work Executor::work(int number, RotaContext *context) {
  Work done{{number, measures ? rank.device().mark() : 0, 0}};
  if (mode == Mode::Train)
    for (const Clear &clear : stage.templateOf(number).clears)
      rank.device().zero(context, rank.at(clear.offset), clear.bytes);
  for (const Call &c : callsOf(number)) {
    call(context, c, stage.slotsOf(number), stage.actions[number].microbatch);
    if (context->failed) {
      done.failed = &c;
      return done;
    }
  }
  if (measures)
    done.span.end = rank.device().mark();
  return done;
}

void Executor::call(RotaContext *context, const Call &call,
                    std::span<const int64_t> slots, int microbatch) {
  // The frame is the call's offsets, turned into pointers.
  FrameOffsets offsets = frameOf(call, slots, microbatch);
  void *pointers[kFrameFields];
  static_assert(sizeof(RotaFrame) == sizeof pointers);
  for (int i = 0; i < kFrameFields; ++i)
    pointers[i] = rank.at(offsets[i]);
  RotaFrame frame;
  std::memcpy(&frame, pointers, sizeof frame);
  rank.runTask(context, call.task, frame);
}

/// Throws the failure of the action's work, if there is one. A device that
/// works on its own fails in some call before the one behind which it shows.
void Executor::checkFailed(const Work &work, RotaContext *context) {
  if (!context->failed)
    return;
  rank.rethrowFailure();
  std::string text = context->failure;
  if (work.failed && work.failed->layer >= 0 && !rank.device().isAsynchronous())
    text = fmt::format("layer {}: {}", work.failed->layer, text);
  throw RunError(rank.explain(text, work.span.action));
}

void Executor::start(int number) {
  const ActionTemplate &actionTemplate = stage.templateOf(number);
  ActionKind kind = actionTemplate.kind;
  if (isAsynchronous(kind))
    rank.flight().add(FlightEvent::TransferStart, number);
  Communicator &communicator = rank.communicator();
  std::vector<Request> &open = requests[number];
  Stream stream = isForward(kind) ? Stream::Forward : Stream::Backward;
  void *place = rank.at(stage.resolve(number, actionTemplate.message));
  if (isSend(kind))
    open.push_back(
        communicator.send(stream, peers[number], place, actionTemplate.bytes));
  if (isReceive(kind))
    open.push_back(communicator.receive(stream, peers[number], place,
                                        actionTemplate.bytes));
  for (const Transfer &t : actionTemplate.transfers) {
    int64_t source = stage.resolve(number, t.source);
    int64_t destination = stage.resolve(number, t.destination);
    if (kind == ActionKind::Offload)
      open.push_back(communicator.copy(rank.at(source),
                                       rank.hostAt(destination), t.bytes));
    else if (kind == ActionKind::Fetch)
      open.push_back(communicator.copy(rank.hostAt(source),
                                       rank.at(destination), t.bytes));
    else
      open.push_back(rank.start(
          kind == ActionKind::Unshard ? Stream::Weights : Stream::Gradients,
          t.collective, rank.at(source), rank.at(destination)));
  }
}

void Executor::finish(int number) {
  Communicator &communicator = rank.communicator();
  for (Request request : requests[number]) {
    if (!measures) {
      communicator.wait(request);
      continue;
    }
    if (communicator.isDone(request)) {
      note(number, communicator.wait(request), kNever);
      continue;
    }
    double from = communicator.now();
    rank.flight().add(FlightEvent::WaitBegin, number);
    note(number, communicator.wait(request), from);
    rank.flight().add(FlightEvent::WaitEnd, number);
  }
  requests[number].clear();
}

void Executor::note(int number, TransferTime span, double waitedFrom) {
  ActionKind kind = stage.kindOf(number);
  bool training = mode == Mode::Train;
  if (training)
    kindTimes[static_cast<int>(kind)] +=
        {1, span.end - span.begin, exposedSeconds(span, waitedFrom)};
  // The times of a GPU's transfers may be unknown.
  if (runs < tracedRuns && span.end > 0.0)
    recorded.push_back(
        {rank.number(), rank.stageNumber(), number, static_cast<int>(runs),
         training, span.begin - transferOrigin, span.end - transferOrigin});
}

std::vector<double> Executor::meanSeconds() {
  settle();
  if (trainingRuns < 2)
    return firstSeconds;
  std::vector<double> mean = seconds;
  for (double &value : mean)
    value /= static_cast<double>(trainingRuns - 1);
  return mean;
}

double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &seconds,
                      bool hasBarrier) {
  Clock clock;
  std::string error;
  double step = 0.0;
  bool ends = hasBarrier ? runClock(program, seconds, clock, error)
                         : runSteadyClock(program, seconds, step, error);
  if (!ends)
    throw RunError(error);
  if (hasBarrier)
    step = clock.makespan;
  double busy = 0.0;
  for (const auto &row : seconds)
    for (double value : row)
      busy += value;
  if (step <= 0.0)
    return 0.0;
  return 1.0 - busy / (step * static_cast<double>(seconds.size()));
}

} // namespace rota
