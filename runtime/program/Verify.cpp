// SPDX-License-Identifier: Apache-2.0
//
// Bounds checks over a program's tables, and the abstract run of its timelines
// that finds a rank which would wait for ever.
#include "runtime/program/Verify.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace rota {

std::string describe(const Program &program, int rank, int action) {
  const Action &a = program.stages[rank].actions[action];
  std::string text = "rank " + std::to_string(rank) + ": chunk " +
                     std::to_string(a.chunk) + ", microbatch " +
                     std::to_string(a.microbatch) + ", " + toString(a.kind);
  if (isSend(a.kind))
    text += " to rank " + std::to_string(a.peer);
  if (isReceive(a.kind))
    text += " from rank " + std::to_string(a.peer);
  return text + " (action " + std::to_string(action) + ")";
}

namespace {

/// Collects the first error of a walk over the program.
class Verifier {
public:
  Verifier(const Program &program, std::string &error)
      : program(program), error(error) {}

  bool run() {
    verifyParameters();
    for (size_t r = 0; r < program.stages.size() && error.empty(); ++r)
      verifyRank(static_cast<int>(r));
    size_t counts = program.kernelRowBytes.size();
    if (counts != 0 && counts != program.kernels.size())
      fail("expected bytes a row of " + std::to_string(program.kernels.size()) +
           " kernels, got " + std::to_string(counts));
    if (program.stages.empty())
      fail("the program has no ranks");
    if (program.microbatches < 1)
      fail("expected at least 1 microbatch, got " +
           std::to_string(program.microbatches));
    return error.empty();
  }

private:
  void fail(const std::string &message) {
    if (error.empty())
      error = message;
  }

  /// [offset, offset + bytes) must lie in `rank`'s arena; -1 is "none" and
  /// allowed where `optional`.
  void place(int rank, int64_t offset, int64_t bytes, bool optional,
             const std::string &what) {
    if (optional && offset == -1)
      return;
    if (rank < 0 || rank >= static_cast<int>(program.stages.size()))
      return fail(what + ": expected a rank below " +
                  std::to_string(program.stages.size()) + ", got " +
                  std::to_string(rank));
    int64_t arena = program.stages[rank].arenaBytes;
    if (offset < 0 || bytes < 0 || offset > arena - bytes)
      fail(what + ": expected bytes within the arena of " +
           std::to_string(arena) + ", got offset " + std::to_string(offset) +
           " and " + std::to_string(bytes) + " bytes");
  }

  void index(int64_t value, size_t size, bool optional,
             const std::string &what) {
    if (optional && value == -1)
      return;
    if (value < 0 || value >= static_cast<int64_t>(size))
      fail(what + ": expected a number below " + std::to_string(size) +
           ", got " + std::to_string(value));
  }

  void verifyParameters() {
    for (const Parameter &p : program.parameters) {
      index(p.updateKernel, program.kernels.size(), true,
            "update kernel of '" + p.name + "'");
      index(p.squareKernel, program.kernels.size(), true,
            "square kernel of '" + p.name + "'");
      for (int64_t size : p.shape)
        if (size < 1)
          fail("parameter '" + p.name +
               "': expected sizes of at least 1, got " + std::to_string(size));
      if (p.rows < 1)
        fail("parameter '" + p.name + "': expected at least 1 row, got " +
             std::to_string(p.rows));
    }
  }

  void verifyUpdate(int rank, const Update &update) {
    index(update.parameter, program.parameters.size(), false,
          "an update's parameter");
    if (!error.empty())
      return;
    const Parameter &p = program.parameters[update.parameter];
    std::string what = "rank " + std::to_string(rank) + ": '" + p.name + "'";
    int64_t count = elementCount(p), f32 = 4 * count;
    int64_t computeBytes = byteSize(p.compute) * count;
    place(rank, update.master, f32, false, what + " master");
    place(rank, update.stored, computeBytes, false, what + " stored copy");
    place(rank, update.firstMoment, f32, false, what + " first moment");
    place(rank, update.secondMoment, f32, false, what + " second moment");
    for (const Place &g : update.gradients)
      place(g.stage, g.offset, f32, false, what + " gradient");
    for (const Place &c : update.copies)
      place(c.stage, c.offset, computeBytes, false, what + " copy");
    if (update.gradients.empty() || update.gradients[0].stage != rank)
      fail(what + ": expected the first gradient accumulator on rank " +
           std::to_string(rank));
    if (p.updateKernel < 0 || p.squareKernel < 0)
      fail(what + ": expected an update kernel and a square kernel");
  }

  void verifyCalls(int rank, int action, const std::vector<Call> &calls) {
    for (const Call &call : calls) {
      std::string what = describe(program, rank, action);
      index(call.task, program.tasks.size(), false, what + ": task");
      for (int64_t offset : call.frame)
        place(rank, offset, 0, true, what + ": frame");
    }
  }

  void verifyAction(int rank, int number) {
    const Action &action = program.stages[rank].actions[number];
    std::string what = describe(program, rank, number);
    if (!isCompute(action.kind)) {
      index(action.peer, program.stages.size(), false, what + ": peer");
      place(rank, action.offset, action.bytes, false, what);
    }
    for (int wait : action.waits)
      if (wait < 0 || wait >= number ||
          isCompute(program.stages[rank].actions[wait].kind))
        fail(what +
             ": expected to wait for an earlier send or receive, got "
             "action " +
             std::to_string(wait));
    verifyCalls(rank, number, action.calls);
    verifyCalls(rank, number, action.evalCalls);
  }

  void verifyRank(int rank) {
    const Stage &r = program.stages[rank];
    std::string what = "rank " + std::to_string(rank) + ": ";
    int64_t m = program.microbatches;
    place(rank, r.inputData, m * program.input.bytes(), true, what + "inputs");
    place(rank, r.targetData, m * program.target.bytes(), true,
          what + "targets");
    place(rank, r.loss, m * 8, true, what + "losses");
    place(rank, r.logits, m * program.logits.bytes(), true, what + "logits");
    if (r.logits >= 0 && program.logits.shape.empty())
      fail(what + "expected a shape of the logits");
    for (const Region &region : r.regions)
      place(rank, region.offset, region.bytes, false, what + region.use);
    for (const RotaryTable &table : r.tables)
      place(rank, table.offset,
            table.positions * static_cast<int64_t>(table.frequencies.size()) *
                8,
            false, what + "rotary table");
    for (const Update &update : r.updates)
      verifyUpdate(rank, update);
    for (size_t a = 0; a < r.actions.size() && error.empty(); ++a)
      verifyAction(rank, static_cast<int>(a));
  }

  const Program &program;
  std::string &error;
};

/// One direction of one pair of ranks: which half comes first waits here.
struct Half {
  int rank, action;
};
using ChannelKey = std::tuple<int, int, bool>; // source, destination, forward

class ClockRun {
public:
  ClockRun(const Program &program,
           const std::vector<std::vector<double>> &seconds, Clock &clock,
           std::string &error)
      : program(program), seconds(seconds), clock(clock), error(error) {}

  bool run() {
    size_t ranks = program.stages.size();
    next.assign(ranks, 0);
    now.assign(ranks, 0.0);
    clock.end.resize(ranks);
    for (size_t r = 0; r < ranks; ++r)
      clock.end[r].assign(program.stages[r].actions.size(), kUnknown);
    for (bool moved = true; moved && error.empty();) {
      moved = false;
      for (size_t r = 0; r < ranks; ++r)
        while (error.empty() && step(static_cast<int>(r)))
          moved = true;
    }
    clock.makespan = *std::max_element(now.begin(), now.end());
    return error.empty() && finished();
  }

private:
  static constexpr double kUnknown = -1.0;

  /// Runs the next action of `rank` if what it waits for has come.
  bool step(int rank) {
    const std::vector<Action> &actions = program.stages[rank].actions;
    int number = next[rank];
    if (number == static_cast<int>(actions.size()))
      return false;
    const Action &action = actions[number];
    double start = now[rank];
    for (int wait : action.waits) {
      if (clock.end[rank][wait] == kUnknown)
        return false;
      start = std::max(start, clock.end[rank][wait]);
    }
    if (isCompute(action.kind)) {
      now[rank] = start + seconds[rank][number];
      clock.end[rank][number] = now[rank];
    } else {
      now[rank] = start;
      meet(rank, number, start);
    }
    ++next[rank];
    return true;
  }

  /// Pairs a send or receive with the first unmatched one of its channel.
  void meet(int rank, int number, double start) {
    const Action &action = program.stages[rank].actions[number];
    bool send = isSend(action.kind);
    bool forward = action.kind == ActionKind::SendForward ||
                   action.kind == ActionKind::RecvForward;
    ChannelKey key{send ? rank : action.peer, send ? action.peer : rank,
                   forward};
    std::deque<std::pair<Half, double>> &others =
        send ? receives[key] : sends[key];
    if (others.empty()) {
      (send ? sends : receives)[key].push_back({{rank, number}, start});
      return;
    }
    auto [half, when] = others.front();
    others.pop_front();
    int64_t theirs = program.stages[half.rank].actions[half.action].bytes;
    if (theirs != action.bytes)
      error = describe(program, rank, number) + ": expected " +
              std::to_string(theirs) + " bytes as in " +
              describe(program, half.rank, half.action) + ", got " +
              std::to_string(action.bytes);
    double end = std::max(start, when);
    clock.end[rank][number] = end;
    clock.end[half.rank][half.action] = end;
  }

  bool finished() {
    for (size_t r = 0; r < next.size(); ++r) {
      const Stage &rank = program.stages[r];
      int count = static_cast<int>(rank.actions.size());
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
  std::vector<int> next;   // per rank: its next action
  std::vector<double> now; // per rank: its time
  std::map<ChannelKey, std::deque<std::pair<Half, double>>> sends, receives;
};

} // namespace

bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds, Clock &clock,
              std::string &error) {
  error.clear();
  return ClockRun(program, seconds, clock, error).run();
}

bool verify(const Program &program, std::string &error) {
  error.clear();
  if (!Verifier(program, error).run())
    return false;
  std::vector<std::vector<double>> zeros;
  for (const Stage &rank : program.stages)
    zeros.emplace_back(rank.actions.size(), 0.0);
  Clock clock;
  return runClock(program, zeros, clock, error);
}

} // namespace rota
