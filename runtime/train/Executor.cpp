// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Executor.h"
#include "runtime/Error.h"
#include "runtime/program/Verify.h"
#include "runtime/train/Gather.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace rota {

/// A trace of more runs than these is larger than its viewers like.
static constexpr int64_t kRecordedRuns = 20;

/// A time that never comes: nobody waited.
static constexpr double kNever = 1e300;

Executor::Executor(Rank &rank, bool record)
    : rank(rank), actions(rank.stage().actions), record(record),
      requests(actions.size()), seconds(actions.size(), 0.0),
      firstSeconds(seconds) {
  if (record)
    decideOnRankZero(rank, true); // nobody returns before all are here
  origin = rank.communicator().now();
  for (size_t a = 0; a < actions.size(); ++a) {
    const Action &action = actions[a];
    peers.push_back(action.peer < 0 ? -1 : rank.peer(action.peer));
    positions.push_back(
        fmt::format("stage {}, {}", rank.stageNumber(),
                    describe(action, static_cast<int>(a),
                             fmt::format("rank {}", peers.back()))));
    requests[a].reserve(action.transfers.size() + 1);
  }
}

void Executor::run(Mode runMode) {
  mode = runMode;
  if (mode == Mode::Train && !rank.program().auxiliaryLosses.empty())
    begin();
  int count = static_cast<int>(actions.size());
  for (int a = 0; a < count; ++a) {
    rank.communicator().setPosition(positions[a]);
    // Messages first: a transfer that ends meanwhile has kept nobody waiting.
    for (bool transfers : {false, true})
      for (int wait : actions[a].waits)
        if (isTransfer(actions[wait].kind) == transfers)
          finish(wait);
    if (isCompute(actions[a].kind))
      compute(a);
    else if (happens(actions[a]))
      start(a);
  }
  for (int a = 0; a < count; ++a)
    finish(a);
  ++runs;
  if (mode == Mode::Train && ++trainingRuns == 1)
    firstSeconds = std::exchange(seconds, std::vector<double>(count, 0.0));
}

/// Cotangents of auxiliary losses need the main loss's weight over the step.
void Executor::begin() {
  const Program &program = rank.program();
  rank.communicator().setPosition("weight of the loss");
  {
    ComputeToken token(rank.cores());
    for (const Call &c : rank.stage().startCalls) {
      call(c);
      if (!rank.context()->failed)
        continue;
      rank.rethrowFailure();
      throw RunError(fmt::format("rank {}: stage {}, weight of the loss: {}",
                                 rank.number(), rank.stageNumber(),
                                 rank.context()->failure));
    }
  }
  double weight = gatherLossWeight(rank);
  float *cotangents = rank.at<float>(rank.stage().auxiliaryCotangents);
  if (!cotangents)
    return;
  for (const AuxiliaryLoss &loss : program.auxiliaryLosses)
    *cotangents++ = static_cast<float>(
        loss.coefficient * weight /
        (loss.weight * static_cast<double>(program.microbatches)));
}

/// An evaluation has no gradients, keeps nothing for a backward, and reads
/// nothing back.
bool Executor::happens(const Action &action) const {
  return mode == Mode::Train || action.kind == ActionKind::SendForward ||
         action.kind == ActionKind::RecvForward ||
         action.kind == ActionKind::Unshard;
}

void Executor::compute(int number) {
  const Action &action = actions[number];
  bool training = mode == Mode::Train;
  const std::vector<Call> &calls = training ? action.calls : action.evalCalls;
  if (calls.empty() && (action.clears.empty() || !training))
    return;
  ComputeToken token(rank.cores());
  double begin = rank.communicator().now();
  if (training)
    for (const Clear &clear : action.clears)
      std::memset(rank.at<char>(clear.offset), 0,
                  static_cast<size_t>(clear.bytes));
  for (const Call &c : calls) {
    call(c);
    if (rank.context()->failed)
      failed(number);
  }
  double end = rank.communicator().now();
  if (training)
    seconds[number] += end - begin;
  if (record && runs < kRecordedRuns)
    recorded.push_back({rank.number(), rank.stageNumber(), number, training,
                        begin - origin, end - origin});
}

void Executor::call(const Call &call) {
  // The frame is the call's offsets, turned into pointers.
  void *pointers[kFrameFields];
  static_assert(sizeof(RotaFrame) == sizeof pointers);
  for (int i = 0; i < kFrameFields; ++i)
    pointers[i] = rank.at<void>(call.frame[i]);
  RotaFrame frame;
  std::memcpy(&frame, pointers, sizeof frame);
  RotaContext *context = rank.context();
  if (!context->profile)
    return rank.task(call.task)(context, &frame);
  double begin = rank.communicator().now();
  rank.task(call.task)(context, &frame);
  context->profile->addTask(call.task, rank.communicator().now() - begin);
}

void Executor::failed(int number) {
  rank.rethrowFailure();
  throw RunError(fmt::format("rank {}: {}: {}", rank.number(),
                             positions[number], rank.context()->failure));
}

void Executor::start(int number) {
  const Action &action = actions[number];
  Communicator &communicator = rank.communicator();
  std::vector<Request> &open = requests[number];
  bool forward = action.kind == ActionKind::SendForward ||
                 action.kind == ActionKind::RecvForward;
  Stream stream = forward ? Stream::Forward : Stream::Backward;
  char *place = rank.at<char>(action.offset);
  if (isSend(action.kind))
    open.push_back(
        communicator.send(stream, peers[number], place, action.bytes));
  if (isReceive(action.kind))
    open.push_back(
        communicator.receive(stream, peers[number], place, action.bytes));
  for (const Transfer &t : action.transfers) {
    if (action.kind == ActionKind::Offload)
      open.push_back(communicator.copy(rank.at<char>(t.source),
                                       rank.hostAt(t.destination), t.bytes));
    else if (action.kind == ActionKind::Fetch)
      open.push_back(communicator.copy(rank.hostAt(t.source),
                                       rank.at<char>(t.destination), t.bytes));
    else
      open.push_back(rank.start(
          action.kind == ActionKind::Unshard ? Stream::Weights
                                             : Stream::Gradients,
          t.collective, rank.at<char>(t.source), rank.at<char>(t.destination)));
  }
}

void Executor::finish(int number) {
  Communicator &communicator = rank.communicator();
  for (Request request : requests[number]) {
    double from = communicator.isDone(request) ? kNever : communicator.now();
    note(number, communicator.wait(request), from);
  }
  requests[number].clear();
}

void Executor::note(int number, TransferTime span, double waitedFrom) {
  ActionKind kind = actions[number].kind;
  bool training = mode == Mode::Train;
  if (training &&
      (kind == ActionKind::Unshard || kind == ActionKind::ReduceGrad)) {
    TransferTimes &times = kind == ActionKind::Unshard ? weights : gradients;
    ++times.count;
    times.seconds += span.end - span.begin;
    times.waited += std::max(0.0, span.end - std::max(span.begin, waitedFrom));
  }
  if (record && runs < kRecordedRuns)
    recorded.push_back({rank.number(), rank.stageNumber(), number, training,
                        span.begin - origin, span.end - origin});
}

std::vector<double> Executor::meanSeconds() const {
  if (trainingRuns < 2)
    return firstSeconds;
  std::vector<double> mean = seconds;
  for (double &value : mean)
    value /= static_cast<double>(trainingRuns - 1);
  return mean;
}

double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &seconds) {
  Clock clock;
  std::string error;
  if (!runClock(program, seconds, clock, error))
    throw RunError(error);
  double busy = 0.0;
  for (const auto &row : seconds)
    for (double value : row)
      busy += value;
  if (clock.makespan <= 0.0)
    return 0.0;
  return 1.0 - busy / (clock.makespan * static_cast<double>(seconds.size()));
}

} // namespace rota
