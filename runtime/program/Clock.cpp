// SPDX-License-Identifier: Apache-2.0
//
// The abstract run of the timelines that finds a stage which would wait for
// ever. One pipeline stands for all: the ranks of a stage do the same.
#include "runtime/program/EventRun.h"
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

/// The waits that a program lists, for EventRun. A wait counts by its action's
/// kind, from when on the action's bytes move.
class ProgramRules {
public:
  ProgramRules(const Program &program,
               const std::vector<std::vector<double>> &seconds,
               ActionSeconds source, Clock &clock)
      : program(program), seconds(seconds), source(source), clock(clock),
        latency(slowestSend(program, seconds)), messages(seconds.size()) {
    clock.begin.resize(seconds.size());
    clock.end.resize(seconds.size());
    clock.exposed.assign(seconds.size(), {});
    for (size_t s = 0; s < seconds.size(); ++s) {
      messages[s].resize(actions(int(s)));
      clock.begin[s].assign(messages[s].size(), 0.0);
      clock.end[s].assign(messages[s].size(), kNotYet);
    }
  }

  bool run(const StepEnds &begins, std::string &error) {
    EventRun run(*this, seconds.size(), {latency, 0, 1, 0, false, begins});
    if (!run.run()) {
      error = whyStuck(run);
      return false;
    }
    clock.makespan = run.makespan();
    clock.ends = run.stepEnds().back();
    return true;
  }

  size_t actions(int stage) const {
    return program.stages[stage].actions.size();
  }
  ActionKind kindOf(int stage, size_t i) const {
    return program.stages[stage].kindOf(int(i));
  }
  size_t atOnce(int, size_t) const { return 1; }

  bool waits(int stage, size_t i, std::vector<WaitFor> &list) const {
    for (bool transfers : {false, true})
      for (int other : program.stages[stage].waitsOf(int(i)))
        if (isTransfer(kindOf(stage, other)) == transfers)
          list.push_back(waitFor(stage, other));
    return areKnown(list);
  }

  /// A stage waits for all that it has started, and knows then when its
  /// messages have arrived.
  bool endWaits(int stage, std::vector<WaitFor> &list) {
    for (size_t i = 0; i < actions(stage); ++i)
      list.push_back(waitFor(stage, i));
    if (!areKnown(list))
      return false;
    for (size_t i = 0; i < actions(stage); ++i)
      if (isMessage(kindOf(stage, i))) {
        clock.end[stage][i] = list[i].until;
        clock.begin[stage][i] = list[i].since;
      }
    return true;
  }

  double duration(int stage, size_t i) const { return seconds[stage][i]; }
  double notBefore(int, size_t) const { return 0.0; }
  double slowsWork(int stage, size_t i) const {
    return source == ActionSeconds::Planned
               ? program.stages[stage].templateOf(int(i)).slowsWork
               : 0.0;
  }
  int peerOf(int stage, size_t i) const {
    return program.stages[stage].templateOf(int(i)).peer;
  }
  void message(int stage, size_t i, const MessageClock::Message &message) {
    messages[stage][i] = message;
  }
  void ended(int stage, size_t i, const TimeSpan &span) {
    if (isMessage(kindOf(stage, i)))
      return;
    clock.begin[stage][i] = span.start;
    clock.end[stage][i] = span.end;
  }
  void waited(int stage, int kind, const TimeSpan &span) {
    clock.exposed[stage][kind] += span.end - span.start;
  }

private:
  double endOf(int stage, size_t i) const {
    return isMessage(kindOf(stage, i))
               ? MessageClock::arrival(messages[stage][i])
               : clock.end[stage][i];
  }

  WaitFor waitFor(int stage, size_t i) const {
    ActionKind kind = kindOf(stage, i);
    double end = endOf(stage, i);
    double since = isMessage(kind) ? end - latency : clock.begin[stage][i];
    return {end, isAsynchronous(kind) ? int(kind) : -1, since};
  }

  static bool areKnown(const std::vector<WaitFor> &list) {
    return std::ranges::none_of(
        list, [](const WaitFor &wait) { return wait.until == kNotYet; });
  }

  /// Names the first stage that waits for ever.
  std::string whyStuck(const EventRun<ProgramRules> &run) const {
    for (int s = 0; s < int(seconds.size()); ++s) {
      if (run.done(s) < actions(s))
        return "the timelines never end: " +
               describe(program, s, int(run.done(s))) +
               " waits for a send or receive that has no counterpart";
      for (size_t i = 0; i < actions(s); ++i)
        if (endOf(s, i) == kNotYet)
          return describe(program, s, int(i)) + " has no counterpart";
    }
    return "";
  }

  const Program &program;
  const std::vector<std::vector<double>> &seconds;
  ActionSeconds source;
  Clock &clock;
  double latency; // latency of messages
  // Per stage and action; without a channel for actions that are none.
  std::vector<std::vector<MessageClock::Message>> messages;
};

} // namespace

bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds,
              ActionSeconds source, Clock &clock, std::string &error,
              const StepEnds &begins) {
  error.clear();
  return ProgramRules(program, seconds, source, clock).run(begins, error);
}

bool runSteadyClock(const Program &program,
                    const std::vector<std::vector<double>> &seconds,
                    ActionSeconds source, double &step, std::string &error) {
  int64_t actions = 0;
  for (const std::vector<double> &row : seconds)
    actions += static_cast<int64_t>(row.size());
  std::vector<StepEnds> ends = {StepEnds(seconds.size(), 0.0)};
  auto run = [&](int64_t steps) -> std::optional<std::vector<StepEnds>> {
    Clock clock;
    while (static_cast<int64_t>(ends.size()) <= steps) {
      if (!runClock(program, seconds, source, clock, error, ends.back()))
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
