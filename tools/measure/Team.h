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
/// mean of the threads' medians. They are seconds of processor time, so that
/// other programs count less. Ends after some `budget` seconds, after one
/// repetition at least.
double secondsTogether(int cores, double budget, const MakeWork &make);

/// Seconds of work, and of a fixed piece of work beside it.
struct PacedSeconds {
  double seconds = 0, pace = 0;
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
    paces.push_back(time.pace);
    return add(name, time.seconds / time.pace) * median(paces);
  }

  /// The pace of the quickest tenth as a share of the median pace: 1 on a
  /// steady host.
  double steadiness() const {
    return paces.empty() ? 1 : quantile(paces, 0.1) / median(paces);
  }

private:
  std::map<std::string, std::vector<double>> all;
  std::vector<double> paces;
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
