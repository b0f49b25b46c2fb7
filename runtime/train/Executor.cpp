// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Executor.h"
#include "runtime/Error.h"
#include "runtime/program/Verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace rota {

/// A trace of more runs than these is larger than its viewers like.
static constexpr int64_t kRecordedRuns = 20;

static std::vector<int> actionCounts(const Program &program) {
  std::vector<int> counts;
  for (const Stage &rank : program.stages)
    counts.push_back(static_cast<int>(rank.actions.size()));
  return counts;
}

/// A zero for each action of each rank.
static std::vector<std::vector<double>> zeros(const Program &program) {
  std::vector<std::vector<double>> rows;
  for (const Stage &rank : program.stages)
    rows.emplace_back(rank.actions.size(), 0.0);
  return rows;
}

Executor::Executor(Machine &machine, bool record)
    : machine(machine), program(machine.program()),
      channels(actionCounts(program)), record(record),
      origin(std::chrono::steady_clock::now()), seconds(zeros(program)),
      firstSeconds(seconds), recorded(program.stages.size()) {}

double Executor::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                       origin)
      .count();
}

void Executor::run(Mode mode) {
  channels.reset();
  machine.onEachRank([&](int rank) {
    try {
      runRank(rank, mode);
    } catch (...) {
      channels.stop();
      throw;
    }
  });
  for (int rank = 0; rank < machine.ranks(); ++rank)
    if (machine.context(rank)->failed)
      throw RunError(machine.context(rank)->failure);
  ++runs;
  if (mode == Mode::Train && ++trainingRuns == 1)
    firstSeconds = std::exchange(seconds, zeros(program));
}

void Executor::runRank(int rank, Mode mode) {
  const std::vector<Action> &actions = program.stages[rank].actions;
  int count = static_cast<int>(actions.size());
  // A wait that ends early means that another rank has failed: its message is
  // the one to show.
  for (int a = 0; a < count; ++a) {
    for (int wait : actions[a].waits)
      if (!channels.wait(rank, wait))
        return;
    if (isCompute(actions[a].kind))
      compute(rank, a, mode);
    else if (isSend(actions[a].kind) || isReceive(actions[a].kind))
      communicate(rank, a, mode);
    else
      channels.complete(rank, a);
    if (machine.context(rank)->failed)
      return channels.stop();
  }
  for (int a = 0; a < count; ++a)
    if (!isCompute(actions[a].kind) && !channels.wait(rank, a))
      return;
}

void Executor::compute(int rank, int action, Mode mode) {
  const Action &a = program.stages[rank].actions[action];
  const std::vector<Call> &calls = mode == Mode::Train ? a.calls : a.evalCalls;
  if (calls.empty())
    return;
  ComputeToken token(machine.cores());
  RotaContext *context = machine.context(rank);
  double begin = now();
  for (const Call &c : calls) {
    call(rank, c);
    if (context->failed) {
      context->failure =
          describe(program, rank, action) + ": " + context->failure;
      return;
    }
  }
  double end = now();
  if (mode == Mode::Train)
    seconds[rank][action] += end - begin;
  if (record && runs < kRecordedRuns)
    recorded[rank].push_back({rank, action, mode == Mode::Train, begin, end});
}

void Executor::call(int rank, const Call &call) {
  // The frame is the call's offsets, turned into pointers.
  void *pointers[kFrameFields];
  static_assert(sizeof(RotaFrame) == sizeof pointers);
  for (int i = 0; i < kFrameFields; ++i)
    pointers[i] = machine.arena(rank).at(call.frame[i]);
  RotaFrame frame;
  std::memcpy(&frame, pointers, sizeof frame);
  RotaContext *context = machine.context(rank);
  if (!context->profile)
    return machine.task(call.task)(context, &frame);
  double begin = now();
  machine.task(call.task)(context, &frame);
  context->profile->addTask(call.task, now() - begin);
}

void Executor::communicate(int rank, int action, Mode mode) {
  const Action &a = program.stages[rank].actions[action];
  bool forward =
      a.kind == ActionKind::SendForward || a.kind == ActionKind::RecvForward;
  // Nothing flows backward in an evaluation.
  if (mode == Mode::Evaluate && !forward)
    return channels.complete(rank, action);
  Channels::Half half{rank, action, machine.at<char>(rank, a.offset), a.bytes};
  if (isSend(a.kind))
    channels.send(half, a.peer, forward);
  else
    channels.receive(half, a.peer, forward);
}

Executor::Loss Executor::loss() const {
  Loss total;
  for (int64_t m = 0; m < program.microbatches; ++m)
    for (int rank = 0; rank < machine.ranks(); ++rank) {
      if (program.stages[rank].loss < 0)
        continue;
      const float *pair =
          machine.at<float>(rank, program.stages[rank].loss) + 2 * m;
      if (!std::isfinite(pair[0]) || !std::isfinite(pair[1]))
        throw RunError(fmt::format(
            "rank {}: the loss of microbatch {} is not finite (sum {}, weight "
            "{})",
            rank, m, pair[0], pair[1]));
      total.sum += pair[0];
      total.weight += pair[1];
    }
  if (!(total.weight > 0.0))
    throw RunError(fmt::format("expected a positive weight of the loss, got {}",
                               total.weight));
  return total;
}

std::vector<std::vector<double>> Executor::meanSeconds() const {
  if (trainingRuns < 2)
    return firstSeconds;
  std::vector<std::vector<double>> mean = seconds;
  for (auto &row : mean)
    for (double &value : row)
      value /= static_cast<double>(trainingRuns - 1);
  return mean;
}

std::vector<TraceEvent> Executor::events() const {
  std::vector<TraceEvent> all;
  for (const auto &list : recorded)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &meanSeconds) {
  Clock clock;
  std::string error;
  if (!runClock(program, meanSeconds, clock, error))
    throw RunError(error);
  double busy = 0.0;
  for (const auto &row : meanSeconds)
    for (double value : row)
      busy += value;
  if (clock.makespan <= 0.0)
    return 0.0;
  return 1.0 -
         busy / (clock.makespan * static_cast<double>(meanSeconds.size()));
}

} // namespace rota
