// SPDX-License-Identifier: Apache-2.0
//
// The simulator of everything that runs as rows of actions, one for each rank:
// of timelines (passes/pipeline/timeline/Simulator.h) and of compiled programs
// (Clock in runtime/program/Verify.h). Both say what an action waits for; when
// it runs is decided here.
#ifndef ROTA_RUNTIME_PROGRAM_EVENTRUN_H
#define ROTA_RUNTIME_PROGRAM_EVENTRUN_H

#include "runtime/program/MessageClock.h"
#include "runtime/program/SteadyState.h"
#include "runtime/program/WorkSpeed.h"

#include <array>
#include <optional>
#include <utility>

namespace rota {

/// A time until which a rank waits.
struct WaitFor {
  double until = 0;      // kNotYet: not known yet
  int cause = -1;        // a number of the rules; -1: the wait does not count
  double since = -1e300; // the wait counts from here on
};

/// Runs the rows of `Rules`. The start of an action is the maximum over the end
/// of the one before it, of its waits, and for a transfer of the last one of
/// its kind; so it does not depend on the order in which ranks are simulated.
/// Compute actions take the time of their rank. Messages and transfers run
/// beside the actions after them; transfers may slow the rank's work down, and
/// where rows take turns on cores that of all rows. At the end of a step a rank
/// waits for what the rules say, and `stepEnd` passes. `Rules` has
///
///   size_t actions(rank)                  the length of a row
///   ActionKind kindOf(rank, i)
///   size_t atOnce(rank, i)                2 where action i starts a pair
///   bool waits(rank, i, list)             what action i, or the pair, waits
///                                         for, in order; false: not known yet
///   bool endWaits(rank, list)             the same at the end of a step
///   double duration(rank, i)              of an action or a pair
///   double notBefore(rank, i)             the earliest start of a transfer
///   double slowsWork(rank, i)             share of its rank's speed that a
///                                         transfer takes
///   int peerOf(rank, i)                   of a message
///   void message(rank, i, message)        a message was posted
///   void ended(rank, i, span)             an action has run
///   void waited(rank, cause, span)        a wait that counts
template <typename Rules> class EventRun {
public:
  struct Settings {
    double latency = 0; // latency of messages
    double stepEnd = 0;
    size_t steps = 1; // number of equal steps in each row
    /// Rows that compute at a time, each at its full speed, since the cores of
    /// a machine are shared; less than 1: one row, at that part of its speed.
    /// 0: any number.
    double rowsAtOnce = 0;
    /// Cores that no row asks for speed the others up, by this share of what
    /// they would do for a row of their own.
    double lent = 0;
    StepEnds begins = {}; // by rank; missing ranks begin at 0
  };

  EventRun(Rules &rules, size_t count, Settings given)
      : rules(rules), settings(std::move(given)), messages(settings.latency),
        ranks(count), ends(settings.steps + 1, StepEnds(count, 0.0)) {
    for (size_t rank = 0; rank < std::min(count, settings.begins.size());
         ++rank)
      ends[0][rank] = ranks[rank].clock = settings.begins[rank];
  }

  /// False when a rank waits for ever.
  bool run() {
    if (settings.rowsAtOnce > 0)
      shareCores();
    else
      sweep();
    for (const Rank &rank : ranks)
      if (rank.ended < settings.steps)
        return false;
    return true;
  }

  /// When the ranks began the first step and ended each.
  const std::vector<StepEnds> &stepEnds() const { return ends; }
  double makespan() const {
    double end = 0;
    for (const Rank &rank : ranks)
      end = std::max(end, rank.clock);
    return end;
  }
  /// The number of actions that a rank has run.
  size_t done(int rank) const { return ranks[rank].done; }
  /// When the last transfer of `kind` ends.
  double streamEnd(int rank, ActionKind kind) const {
    return ranks[rank].streams[transferStream(kind)];
  }

private:
  struct Rank {
    size_t done = 0, ended = 0; // actions, steps
    double clock = 0;
    bool runs = false; // a compute action, while cores are shared
    std::array<double, kTransferStreams> streams{};
    WorkSpeed speed;
  };

  Rules &rules;
  Settings settings;
  MessageClock messages;
  std::vector<Rank> ranks;
  std::vector<StepEnds> ends;
  std::vector<WaitFor> list; // kept for its memory

  /// A compute action, or both halves of a pair, while cores are shared.
  struct Running {
    int rank = 0;
    double start = 0, end = 0;
  };
  std::vector<Running> running;
  double now = 0;   // no action that is not known yet begins before
  double speed = 1; // of those that run, beside that of `duration`

  void sweep() {
    // Values travel up and down the ranks, so sweeps alternate in direction.
    bool moved = true;
    for (bool up = true; moved; up = !up) {
      moved = false;
      for (size_t i = 0; i < ranks.size(); ++i) {
        int rank = int(up ? i : ranks.size() - 1 - i);
        while (hasNext(rank) && step(rank))
          moved = true;
      }
    }
  }

  /// Runs compute actions in the order in which they ask for cores. Actions
  /// whose time is not known yet ask later than all that are.
  void shareCores() {
    while (true) {
      std::optional<std::pair<double, int>> first = firstToAsk();
      auto last = std::min_element(
          running.begin(), running.end(),
          [](const Running &a, const Running &b) { return a.end < b.end; });
      bool isFull = double(running.size() + 1) > settings.rowsAtOnce;
      if (running.empty() ? first.has_value()
                          : first && !isFull && first->first < last->end) {
        now = std::max(now, first->first);
        begin(first->second);
      } else if (!running.empty()) {
        now = last->end;
        int rank = last->rank;
        TimeSpan span{last->start, now};
        running.erase(last);
        finish(rank, span);
      } else {
        return;
      }
      changeSpeed();
    }
  }

  /// The time and the rank of the next compute action that asks for cores,
  /// after all that takes no time of a rank.
  std::optional<std::pair<double, int>> firstToAsk() {
    std::optional<std::pair<double, int>> first;
    for (int number = 0; number < int(ranks.size()); ++number) {
      if (ranks[number].runs)
        continue;
      while (hasNext(number) &&
             !isCompute(rules.kindOf(number, ranks[number].done)) &&
             step(number))
        ;
    }
    for (int number = 0; number < int(ranks.size()); ++number)
      if (std::optional<double> asks = nextAsks(number))
        if (!first || *asks < first->first)
          first = {*asks, number};
    return first;
  }

  /// The rank's next action waits, and runs from now on.
  void begin(int number) {
    Rank &rank = ranks[number];
    list.clear();
    rules.waits(number, rank.done, list);
    waitForAll(number);
    rank.runs = true;
    double work = rules.duration(number, rank.done) / speed;
    running.push_back({number, now, rank.speed.endOf(now, work)});
  }

  /// Actions end sooner or later as fewer or more rows run.
  void changeSpeed() {
    double rows = std::max(1.0, double(running.size()));
    double next = settings.rowsAtOnce / rows;
    if (next > 1)
      next = 1 + settings.lent * (next - 1);
    if (next == speed)
      return;
    for (Running &action : running)
      setWorkLeft(action, workLeft(action) * speed / next);
    speed = next;
  }

  /// The work that is left of an action that runs.
  double workLeft(const Running &action) const {
    return ranks[action.rank].speed.workIn({now, action.end});
  }
  void setWorkLeft(Running &action, double work) {
    action.end = ranks[action.rank].speed.endOf(now, work);
  }

  /// A transfer of the rank takes that share of its speed. Where rows take
  /// turns, it takes as much of the cores of those that compute meanwhile.
  void slowWork(int number, const TimeSpan &span, double share) {
    if (settings.rowsAtOnce == 0 || settings.rowsAtOnce >= double(ranks.size()))
      return ranks[number].speed.slowDown(span, share, ranks[number].clock);
    std::vector<double> left;
    for (const Running &action : running)
      left.push_back(workLeft(action));
    for (Rank &rank : ranks)
      rank.speed.slowDown(span, share / std::max(1.0, settings.rowsAtOnce),
                          now);
    for (size_t i = 0; i < running.size(); ++i)
      setWorkLeft(running[i], left[i]);
  }

  /// Whether the rank has an action left. At the end of a step it waits; false
  /// where it does not know how long.
  bool hasNext(int number) {
    Rank &rank = ranks[number];
    size_t row = rules.actions(number), last = settings.steps;
    if (rank.ended < last && rank.done == row / last * (rank.ended + 1)) {
      list.clear();
      if (!rules.endWaits(number, list))
        return false;
      waitForAll(number);
      rank.clock += settings.stepEnd;
      ends[++rank.ended][number] = rank.clock;
    }
    return rank.done < row;
  }

  /// When the rank's next action could start but for cores, where it computes.
  std::optional<double> nextAsks(int number) {
    if (ranks[number].runs || !hasNext(number))
      return std::nullopt;
    list.clear();
    if (!rules.waits(number, ranks[number].done, list))
      return std::nullopt;
    double time = ranks[number].clock;
    for (const WaitFor &wait : list)
      time = std::max(time, wait.until);
    return time;
  }

  void waitForAll(int number) {
    double &clock = ranks[number].clock;
    for (const WaitFor &wait : list) {
      if (wait.until <= clock)
        continue;
      if (wait.cause >= 0)
        rules.waited(number, wait.cause,
                     {std::max(clock, wait.since), wait.until});
      clock = wait.until;
    }
  }

  /// Runs the next action, or both halves of a pair. False when it waits for
  /// what is not known yet.
  bool step(int number) {
    Rank &rank = ranks[number];
    list.clear();
    if (!rules.waits(number, rank.done, list))
      return false;
    waitForAll(number);
    size_t i = rank.done;
    ActionKind kind = rules.kindOf(number, i);
    if (isCompute(kind)) {
      compute(number);
      return true;
    }
    TimeSpan span{rank.clock, rank.clock};
    if (isTransfer(kind)) {
      double &stream = rank.streams[transferStream(kind)];
      span.start = std::max({rank.clock, stream, rules.notBefore(number, i)});
      span.end = stream = span.start + rules.duration(number, i);
      if (double share = rules.slowsWork(number, i); share > 0)
        slowWork(number, span, share);
    } else if (isMessage(kind)) {
      rules.message(
          number, i,
          messages.add(kind, number, rules.peerOf(number, i), rank.clock));
    }
    rules.ended(number, i, span);
    ++rank.done;
    return true;
  }

  void compute(int number) {
    const Rank &rank = ranks[number];
    double work = rules.duration(number, rank.done);
    finish(number, {rank.clock, rank.speed.endOf(rank.clock, work)});
  }

  /// The rank's next action, or both halves of a pair, have run.
  void finish(int number, const TimeSpan &span) {
    Rank &rank = ranks[number];
    size_t first = rank.done;
    rank.runs = false;
    rank.clock = span.end;
    rank.done += rules.atOnce(number, first);
    for (size_t i = first; i < rank.done; ++i)
      rules.ended(number, i, span);
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_EVENTRUN_H
