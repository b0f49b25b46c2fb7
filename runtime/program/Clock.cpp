// SPDX-License-Identifier: Apache-2.0
//
// The abstract run of the timelines that finds a stage which would wait for
// ever. One pipeline stands for all: the ranks of a stage do the same.
#include "runtime/program/MessageClock.h"
#include "runtime/program/Verify.h"

namespace rota {

namespace {

class ClockRun {
public:
  ClockRun(const Program &program,
           const std::vector<std::vector<double>> &seconds, Clock &clock,
           std::string &error)
      : program(program), seconds(seconds), clock(clock), error(error) {}

  bool run() {
    size_t stages = program.stages.size();
    next.assign(stages, 0);
    now.assign(stages, 0.0);
    messages.resize(stages);
    clock.end.resize(stages);
    for (size_t s = 0; s < stages; ++s) {
      messages[s].resize(program.stages[s].actions.size());
      clock.end[s].assign(messages[s].size(), kNotYet);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < stages; ++s)
        while (step(static_cast<int>(s)))
          moved = true;
    }
    clock.makespan = *std::max_element(now.begin(), now.end());
    return finish();
  }

private:
  double endOf(int stage, int number) const {
    const MessageClock::Message &message = messages[stage][number];
    return message.channel ? MessageClock::arrival(message)
                           : clock.end[stage][number];
  }

  /// Runs the next action of `stage` when the actions that it waits for have
  /// ended.
  bool step(int stage) {
    const Stage &of = program.stages[stage];
    int number = next[stage];
    if (number == static_cast<int>(of.actions.size()))
      return false;
    const ActionTemplate &action = of.templateOf(number);
    double start = now[stage];
    for (int wait : of.waitsOf(number)) {
      double end = endOf(stage, wait);
      if (end == kNotYet)
        return false;
      start = std::max(start, end);
    }
    now[stage] =
        start + (isCompute(action.kind) ? seconds[stage][number] : 0.0);
    if (isMessage(action.kind))
      messages[stage][number] =
          messageClock.add(action.kind, stage, action.peer, start);
    else
      clock.end[stage][number] = now[stage];
    ++next[stage];
    return true;
  }

  /// Notes when messages arrive. False when an action has not run, or a message
  /// has no other half.
  bool finish() {
    for (int s = 0; s < static_cast<int>(next.size()); ++s) {
      int count = static_cast<int>(program.stages[s].actions.size());
      if (next[s] < count) {
        error = "the timelines never end: " + describe(program, s, next[s]) +
                " waits for a send or receive that has no counterpart";
        return false;
      }
      for (int a = 0; a < count; ++a) {
        clock.end[s][a] = endOf(s, a);
        if (clock.end[s][a] == kNotYet) {
          error = describe(program, s, a) + " has no counterpart";
          return false;
        }
      }
    }
    return true;
  }

  const Program &program;
  const std::vector<std::vector<double>> &seconds;
  Clock &clock;
  std::string &error;
  std::vector<int> next;   // per stage: its next action
  std::vector<double> now; // per stage: its time
  MessageClock messageClock;
  // Per stage and action; without a channel for actions that are none.
  std::vector<std::vector<MessageClock::Message>> messages;
};

} // namespace

bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds, Clock &clock,
              std::string &error) {
  error.clear();
  return ClockRun(program, seconds, clock, error).run();
}

} // namespace rota
