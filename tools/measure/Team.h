// SPDX-License-Identifier: Apache-2.0
//
// Threads that work at once, one on each core, and the time that their work
// takes.
#ifndef ROTA_TOOLS_MEASURE_TEAM_H
#define ROTA_TOOLS_MEASURE_TEAM_H

#include "runtime/device/Cores.h"
#include "tools/Median.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace rota {

/// Work that can be repeated.
using Repeated = std::function<void()>;

/// Makes the work of a thread, with memory of its own.
using MakeWork = std::function<Repeated(int thread)>;

/// Repeats work on `cores` threads at once: `make` is called on each thread.
/// Returns the seconds in which each thread does its work once: the harmonic
/// mean of the threads' mean times. They are seconds of processor time, so that
/// other programs count less. Ends after some `budget` seconds, after one
/// repetition at least.
double secondsTogether(int cores, double budget, const MakeWork &make);

/// Seconds of a fixed piece of work on each of the cores at once.
struct Pace {
  std::vector<double> cores;

  double mean() const; // in which all do as much together
  double slowest() const {
    return *std::max_element(cores.begin(), cores.end());
  }
  Pace &operator+=(const Pace &other);
  Pace &operator/=(double count);
};

/// Seconds of work, and the pace beside it.
struct PacedSeconds {
  double seconds = 0;
  Pace pace;
};

/// As secondsTogether. Each thread does the work of `makePace` some times
/// before and after the other.
PacedSeconds pacedTogether(int cores, double budget, const MakeWork &make,
                           const MakeWork &makePace);

/// Repeats work that divides itself among `cores`, of which the calling thread
/// takes one. Returns its seconds of wall-clock time, since threads sleep while
/// others work: what a quarter of the repetitions take at most, so that other
/// programs count less. Ends as secondsTogether does.
double secondsShared(Cores &cores, double budget, const Repeated &work);

/// As secondsShared, beside the pace of all cores as in pacedTogether.
PacedSeconds pacedShared(Cores &cores, double budget, const Repeated &work,
                         const MakeWork &makePace);

/// The copies of work's memory that are used one after another, so that it is
/// as cold as a trainer's: more than a core's own caches hold, but not all that
/// the cores share.
inline int64_t copiesOf(int64_t bytes) {
  return std::clamp<int64_t>((int64_t(8) << 20) / std::max<int64_t>(bytes, 1),
                             1, 64);
}

/// Times of what is measured in several rounds. What another program does
/// during one of them does not change the median.
class MedianTimes {
public:
  /// Adds a time; returns the median of those with this name.
  double add(const std::string &name, double seconds) {
    std::vector<double> &times = all[name];
    times.push_back(seconds);
    return median(times);
  }

  /// Adds a time in units of the pace beside it, which another program on the
  /// same core, or on the other half of it, slows down alike. Returns the
  /// median of those with this name, at the median pace of all.
  double add(const std::string &name, const PacedSeconds &time) {
    addPace(time.pace);
    return add(name, time.seconds / time.pace.mean()) * median(ofTurns(meanOf));
  }

  /// The pace of the quickest tenth as a share of the median pace: 1 on a
  /// steady host.
  double steadiness() const {
    std::vector<double> means = ofTurns(meanOf);
    return means.empty() ? 1 : quantile(means, 0.1) / median(means);
  }

  /// What work takes until the slowest core has done it, by what it takes on
  /// average.
  double slowestCore() const {
    std::vector<double> ratios = ofTurns(
        [](const Turn &turn) { return turn.sum.slowest() / turn.sum.mean(); });
    return ratios.empty() ? 1 : median(ratios);
  }

private:
  /// So many paces, one after another, take about as long as a step.
  static constexpr size_t kTurn = 16;

  struct Turn {
    Pace sum;
    size_t count = 0;
  };

  void addPace(const Pace &pace) {
    if (turns.empty() || turns.back().count == kTurn)
      turns.push_back({pace, 1});
    else
      turns.back().sum += pace, turns.back().count += 1;
  }

  static double meanOf(const Turn &turn) {
    return turn.sum.mean() / double(turn.count);
  }

  template <typename Of> std::vector<double> ofTurns(const Of &of) const {
    std::vector<double> values;
    std::transform(turns.begin(), turns.end(), std::back_inserter(values), of);
    return values;
  }

  std::map<std::string, std::vector<double>> all;
  std::vector<Turn> turns;
};

/// Wall-clock time since it was made.
class WallClock {
public:
  WallClock();
  double seconds() const;

private:
  double begin;
};

/// The share of the cores' time that a program gets now which asks for all of
/// it: 1 on an idle machine.
double freeShare(int cores);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_TEAM_H
