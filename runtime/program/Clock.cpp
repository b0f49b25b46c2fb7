// SPDX-License-Identifier: Apache-2.0
//
// The abstract run of the timelines that finds a stage which would wait for
// ever. One pipeline stands for all: the ranks of a stage do the same.
#include "runtime/program/MessageClock.h"
#include "runtime/program/Verify.h"

namespace rota {

namespace {

/// Actions that are run at most to find a step's time in the steady state: well
/// under a second's work.
constexpr int64_t kSteadyActions = int64_t(1) << 20;

/// The largest of the seconds of sends.
double slowestSend(const Program &program,
                   const std::vector<std::vector<double>> &seconds) {
  double slowest = 0.0;
  for (size_t s = 0; s < program.stages.size(); ++s)
    for (size_t a = 0; a < seconds[s].size(); ++a)
      if (isSend(program.stages[s].kindOf(static_cast<int>(a))))
        slowest = std::max(slowest, seconds[s][a]);
  return slowest;
}

class ClockRun {
public:
  ClockRun(const Program &program,
           const std::vector<std::vector<double>> &seconds, Clock &clock,
           std::string &error, const StepEnds &begins)
      : program(program), seconds(seconds), clock(clock), error(error),
        begins(begins), latency(slowestSend(program, seconds)),
        messageClock(latency) {}

  bool run() {
    size_t stages = program.stages.size();
    next.assign(stages, 0);
    now = begins;
    now.resize(stages, 0.0);
    streams.assign(stages, {});
    messages.resize(stages);
    clock.begin.resize(stages);
    clock.end.resize(stages);
    clock.exposed.assign(stages, {});
    for (size_t s = 0; s < stages; ++s) {
      messages[s].resize(program.stages[s].actions.size());
      clock.end[s].assign(messages[s].size(), kNotYet);
      clock.begin[s].assign(messages[s].size(), 0.0);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < stages; ++s)
        while (step(static_cast<int>(s)))
          moved = true;
    }
    return finish();
  }

private:
  double endOf(int stage, int number) const {
    const MessageClock::Message &message = messages[stage][number];
    return message.channel ? MessageClock::arrival(message)
                           : clock.end[stage][number];
  }

  /// The stage waits for an action whose end is known.
  void wait(int stage, int number) {
    double end = endOf(stage, number);
    ActionKind kind = program.stages[stage].kindOf(number);
    double begin = isMessage(kind) ? end - latency : clock.begin[stage][number];
    if (isAsynchronous(kind))
      clock.exposed[stage][static_cast<int>(kind)] +=
          std::max(0.0, end - std::max(begin, now[stage]));
    now[stage] = std::max(now[stage], end);
  }

  /// Runs the next action of `stage` when the actions that it waits for have
  /// ended.
  bool step(int stage) {
    const Stage &of = program.stages[stage];
    int number = next[stage];
    if (number == static_cast<int>(of.actions.size()))
      return false;
    for (int other : of.waitsOf(number))
      if (endOf(stage, other) == kNotYet)
        return false;
    for (bool transfers : {false, true})
      for (int other : of.waitsOf(number))
        if (isTransfer(of.kindOf(other)) == transfers)
          wait(stage, other);
    start(stage, number);
    ++next[stage];
    return true;
  }

  void start(int stage, int number) {
    const ActionTemplate &action = program.stages[stage].templateOf(number);
    double begin = now[stage], taken = seconds[stage][number];
    if (isMessage(action.kind)) {
      messages[stage][number] =
          messageClock.add(action.kind, stage, action.peer, begin);
      return;
    }
    if (isTransfer(action.kind)) {
      double &last = streams[stage][transferStream(action.kind)];
      begin = std::max(begin, last);
      last = begin + taken;
    } else if (isCompute(action.kind)) {
      now[stage] = begin + taken;
    } else {
      taken = 0.0;
    }
    clock.begin[stage][number] = begin;
    clock.end[stage][number] = begin + taken;
  }

  /// Notes when messages arrive, and waits for all that is under way. False
  /// when an action has not run, or a message has no other half.
  bool finish() {
    for (int s = 0; s < static_cast<int>(next.size()); ++s) {
      int count = static_cast<int>(program.stages[s].actions.size());
      if (next[s] < count) {
        error = "the timelines never end: " + describe(program, s, next[s]) +
                " waits for a send or receive that has no counterpart";
        return false;
      }
      for (int a = 0; a < count; ++a) {
        double end = endOf(s, a);
        if (end == kNotYet) {
          error = describe(program, s, a) + " has no counterpart";
          return false;
        }
        wait(s, a);
        clock.end[s][a] = end;
        if (messages[s][a].channel)
          clock.begin[s][a] = end - latency;
      }
    }
    clock.makespan = *std::max_element(now.begin(), now.end());
    clock.ends = now;
    return true;
  }

  const Program &program;
  const std::vector<std::vector<double>> &seconds;
  Clock &clock;
  std::string &error;
  const StepEnds &begins;
  double latency;          // latency of messages
  std::vector<int> next;   // per stage: its next action
  std::vector<double> now; // per stage: its time
  // Per stage and kind of transfer: the end of the last one.
  std::vector<std::array<double, kTransferStreams>> streams;
  MessageClock messageClock;
  // Per stage and action; without a channel for actions that are none.
  std::vector<std::vector<MessageClock::Message>> messages;
};

} // namespace

bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds, Clock &clock,
              std::string &error, const StepEnds &begins) {
  error.clear();
  return ClockRun(program, seconds, clock, error, begins).run();
}

bool runSteadyClock(const Program &program,
                    const std::vector<std::vector<double>> &seconds,
                    double &step, std::string &error) {
  int64_t actions = 0;
  for (const std::vector<double> &row : seconds)
    actions += static_cast<int64_t>(row.size());
  std::vector<StepEnds> ends = {StepEnds(seconds.size(), 0.0)};
  auto run = [&](int64_t steps) -> std::optional<std::vector<StepEnds>> {
    Clock clock;
    while (static_cast<int64_t>(ends.size()) <= steps) {
      if (!runClock(program, seconds, clock, error, ends.back()))
        return std::nullopt;
      ends.push_back(clock.ends);
    }
    return ends;
  };
  std::optional<double> time = steadyStepTime(actions, kSteadyActions, run);
  step = time.value_or(0.0);
  return time.has_value();
}

} // namespace rota
