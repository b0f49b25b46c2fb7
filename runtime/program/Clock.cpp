// SPDX-License-Identifier: Apache-2.0
//
// The abstract run of the timelines that finds a stage which would wait for
// ever. One pipeline stands for all: the ranks of a stage do the same.
#include "runtime/program/Verify.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace rota {

namespace {

/// One direction of one pair of stages: which half comes first waits here.
struct Half {
  int stage, action;
};
using ChannelKey = std::tuple<int, int, bool>; // source, destination, forward

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
    clock.end.resize(stages);
    for (size_t r = 0; r < stages; ++r)
      clock.end[r].assign(program.stages[r].actions.size(), kUnknown);
    for (bool moved = true; moved && error.empty();) {
      moved = false;
      for (size_t r = 0; r < stages; ++r)
        while (error.empty() && step(static_cast<int>(r)))
          moved = true;
    }
    clock.makespan = *std::max_element(now.begin(), now.end());
    return error.empty() && finished();
  }

private:
  static constexpr double kUnknown = -1.0;

  /// Runs the next action of `stage` if what it waits for has come.
  bool step(int stage) {
    const Stage &of = program.stages[stage];
    int number = next[stage];
    if (number == static_cast<int>(of.actions.size()))
      return false;
    ActionKind kind = of.kindOf(number);
    double start = now[stage];
    for (int wait : of.waitsOf(number)) {
      if (clock.end[stage][wait] == kUnknown)
        return false;
      start = std::max(start, clock.end[stage][wait]);
    }
    if (isCompute(kind)) {
      now[stage] = start + seconds[stage][number];
      clock.end[stage][number] = now[stage];
    } else {
      now[stage] = start;
      // What is no message depends on no other stage.
      if (isSend(kind) || isReceive(kind))
        meet(stage, number, start);
      else
        clock.end[stage][number] = start;
    }
    ++next[stage];
    return true;
  }

  /// Pairs a send or receive with the first unmatched one of its channel.
  void meet(int stage, int number, double start) {
    const ActionTemplate &action = program.stages[stage].templateOf(number);
    bool send = isSend(action.kind);
    bool forward = action.kind == ActionKind::SendForward ||
                   action.kind == ActionKind::RecvForward;
    ChannelKey key{send ? stage : action.peer, send ? action.peer : stage,
                   forward};
    std::deque<std::pair<Half, double>> &others =
        send ? receives[key] : sends[key];
    if (others.empty()) {
      (send ? sends : receives)[key].push_back({{stage, number}, start});
      return;
    }
    auto [half, when] = others.front();
    others.pop_front();
    int64_t theirs = program.stages[half.stage].templateOf(half.action).bytes;
    if (theirs != action.bytes)
      error = describe(program, stage, number) + ": expected " +
              std::to_string(theirs) + " bytes as in " +
              describe(program, half.stage, half.action) + ", got " +
              std::to_string(action.bytes);
    double end = std::max(start, when);
    clock.end[stage][number] = end;
    clock.end[half.stage][half.action] = end;
  }

  bool finished() {
    for (size_t r = 0; r < next.size(); ++r) {
      const Stage &stage = program.stages[r];
      int count = static_cast<int>(stage.actions.size());
      if (next[r] < count) {
        error = "the timelines never end: " +
                describe(program, static_cast<int>(r), next[r]) +
                " waits for a send or receive that has no counterpart";
        return false;
      }
      for (int a = 0; a < count; ++a)
        if (clock.end[r][a] == kUnknown) {
          error =
              describe(program, static_cast<int>(r), a) + " has no counterpart";
          return false;
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
  std::map<ChannelKey, std::deque<std::pair<Half, double>>> sends, receives;
};

} // namespace

bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds, Clock &clock,
              std::string &error) {
  error.clear();
  return ClockRun(program, seconds, clock, error).run();
}

} // namespace rota
