// SPDX-License-Identifier: Apache-2.0
//
// The time of a step in a run without step barriers, out of what EventRun says
// of some steps.
#ifndef ROTA_RUNTIME_PROGRAM_STEADYSTATE_H
#define ROTA_RUNTIME_PROGRAM_STEADYSTATE_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace rota {

/// When each rank ends a step, which is when it begins the next one.
using StepEnds = std::vector<double>;

/// Bounds of the time that a step takes in the steady state, which is the limit
/// of (end of step n) / n.
struct StepTimeBounds {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool areEqual() const { return most - least <= 1e-9 * most; }
};

/// The closest bounds that `ends` prove: ends[0] are the times at which the
/// ranks begin the first step, ends[s] those at which they end step s.
///
/// The ends of a step are sums of costs and maxima of them, so they are a
/// function of the times at which the ranks begin it that is monotone, and that
/// moves by c where all of these move by c. So where no rank ends step s + k
/// later than c after its end of step s, none ends step s + j*k later than j*c
/// after, and a step takes c/k at most; likewise at least. Where all ranks have
/// moved by the same time both bounds are equal, and the time is exact: the
/// largest mean of a cycle, in max-plus algebra the eigenvalue of the step
/// (Baccelli, Cohen, Olsder and Quadrat, Synchronization and Linearity, 1992).
inline StepTimeBounds boundStepTime(const std::vector<StepEnds> &ends) {
  StepTimeBounds closest;
  for (size_t to = 1; to < ends.size(); ++to)
    for (size_t from = 0; from < to; ++from) {
      StepTimeBounds bounds{std::numeric_limits<double>::infinity(), 0};
      for (size_t rank = 0; rank < ends[to].size(); ++rank) {
        double time = (ends[to][rank] - ends[from][rank]) / double(to - from);
        bounds.least = std::min(bounds.least, time);
        bounds.most = std::max(bounds.most, time);
      }
      closest.least = std::max(closest.least, bounds.least);
      closest.most = std::min(closest.most, bounds.most);
    }
  return closest;
}

/// Steps that are run at most to find the time of one.
inline constexpr int64_t kMostSteadySteps = 48;

/// The time of a step in the steady state. `run(n)` gives the ends of `n`
/// steps, as boundStepTime reads them, or nothing where the timelines do not
/// complete. It is asked for more steps until the time is exact. Where it is
/// not after kMostSteadySteps, or the steps would have more than `mostActions`
/// in all, the middle of the bounds is returned: the bounds differ by the
/// largest distance of two ranks over the number of steps at most.
template <typename Run>
std::optional<double> steadyStepTime(int64_t actions, int64_t mostActions,
                                     Run run) {
  for (int64_t steps = 3;; steps *= 2) {
    std::optional<std::vector<StepEnds>> ends = run(steps);
    if (!ends)
      return std::nullopt;
    StepTimeBounds bounds = boundStepTime(*ends);
    if (bounds.areEqual())
      return bounds.most;
    if (2 * steps > kMostSteadySteps || 2 * steps * actions > mostActions)
      return (bounds.least + bounds.most) / 2;
  }
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_STEADYSTATE_H
