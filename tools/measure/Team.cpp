// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/Team.h"
#include "runtime/device/MemoryNodes.h"
#include "runtime/threads/StartThread.h"
#include "tools/Median.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <ctime>
#include <vector>

namespace rota {
namespace {

/// A sample is at least this long: the clocks are read in some 100 ns.
constexpr double kLeastSample = 300e-6;
constexpr size_t kMostSamples = 200;
/// A sample that takes so many times the median has met another program.
constexpr double kInterrupted = 3;

double wallSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Processor time of the calling thread.
double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The mean of samples without those that were interrupted. A step is long, so
/// that it takes the mean of what its kernels take.
double steadyMean(const std::vector<double> &samples) {
  double most = kInterrupted * median(samples), sum = 0, count = 0;
  for (double each : samples)
    if (each <= most)
      sum += each, count += 1;
  return sum / count;
}

/// Times of `run` on a clock. It has run once before.
std::vector<double> sample(double budget, const Repeated &run,
                           double (*clock)()) {
  std::vector<double> samples;
  double begin = wallSeconds();
  int repeat = 1;
  while (samples.empty() ||
         (samples.size() < kMostSamples && wallSeconds() - begin < budget)) {
    double start = clock();
    for (int i = 0; i < repeat; ++i)
      run();
    double seconds = clock() - start;
    if (samples.empty() && seconds < kLeastSample && repeat < (1 << 20)) {
      repeat *= seconds < kLeastSample / 8 ? 8 : 2;
      continue;
    }
    samples.push_back(seconds / repeat);
  }
  return samples;
}

/// Seconds of processor time of the pace's work, of which the first time
/// brings its memory near.
double paceNow(const Repeated &pace) {
  constexpr int repeat = 3;
  pace();
  double start = threadSeconds();
  for (int i = 0; i < repeat; ++i)
    pace();
  return (threadSeconds() - start) / repeat;
}

double harmonicMean(const std::vector<double> &values) {
  double sum = 0;
  for (double each : values)
    sum += 1 / each;
  return double(values.size()) / sum;
}

} // namespace

double Pace::mean() const { return harmonicMean(cores); }

Pace &Pace::operator+=(const Pace &other) {
  for (size_t i = 0; i < cores.size(); ++i)
    cores[i] += other.cores[i];
  return *this;
}

Pace &Pace::operator/=(double count) {
  for (double &each : cores)
    each /= count;
  return *this;
}

WallClock::WallClock() : begin(wallSeconds()) {}
double WallClock::seconds() const { return wallSeconds() - begin; }

namespace {
struct OnCores {
  std::vector<double> seconds;
  Pace pace; // empty: it was not asked for
};

OnCores measureOnCores(int cores, double budget, const MakeWork &make,
                       const MakeWork &makePace) {
  OnCores result{std::vector<double>(cores), {}};
  if (makePace)
    result.pace.cores.resize(cores);
  std::barrier start(cores);
  // As ranks: memory that a thread keeps for its next work stays near.
  static const std::vector<MemoryNode> nodes = memoryNodes();
  NodePlan plan = planNodes(nodes, cores, cores);
  runTogether("measuring", cores, [&](int thread) {
    OnNode node(plan.nodeOf(thread));
    Repeated work, pace;
    try {
      if (makePace)
        pace = makePace(thread);
      work = make(thread);
      work(); // compiles products, maps memory
    } catch (...) {
      start.arrive_and_drop();
      throw;
    }
    start.arrive_and_wait();
    double before = pace ? paceNow(pace) : 0;
    result.seconds[thread] = steadyMean(sample(budget, work, threadSeconds));
    if (pace)
      result.pace.cores[thread] = (before + paceNow(pace)) / 2;
  });
  return result;
}
} // namespace

double secondsTogether(int cores, double budget, const MakeWork &make) {
  return harmonicMean(measureOnCores(cores, budget, make, nullptr).seconds);
}

PacedSeconds pacedTogether(int cores, double budget, const MakeWork &make,
                           const MakeWork &makePace) {
  OnCores measured = measureOnCores(cores, budget, make, makePace);
  return {harmonicMean(measured.seconds), measured.pace};
}

double secondsShared(Cores &cores, double budget, const Repeated &work) {
  ComputeToken token(cores);
  work(); // compiles products, maps memory
  return quantile(sample(budget, work, wallSeconds), 0.25);
}

PacedSeconds pacedShared(Cores &cores, double budget, const Repeated &work,
                         const MakeWork &makePace) {
  auto paceOfCores = [&] {
    return measureOnCores(cores.count(), 0, makePace, nullptr).seconds;
  };
  Pace pace{paceOfCores()};
  double seconds = secondsShared(cores, budget, work);
  pace += {paceOfCores()};
  return {seconds, pace /= 2};
}

double freeShare(int cores) {
  std::vector<double> shares(cores);
  runTogether("measuring", cores, [&](int thread) {
    double begin = wallSeconds(), own = threadSeconds();
    while (wallSeconds() - begin < 0.1) {
    }
    shares[thread] = (threadSeconds() - own) / (wallSeconds() - begin);
  });
  double sum = 0;
  for (double share : shares)
    sum += share;
  return std::min(1.0, sum / cores);
}

} // namespace rota
