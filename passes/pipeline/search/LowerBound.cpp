// SPDX-License-Identifier: Apache-2.0
//
// See LowerBound.h.
#include "passes/pipeline/search/LowerBound.h"

#include "passes/pipeline/search/OrderRun.h"

#include <algorithm>
#include <climits>

namespace rota::pipe {

namespace {

class Bounds {
public:
  explicit Bounds(const Problem &problem)
      : problem(problem), starts(problem.path()), drains(problem.chunks) {
    for (int lane = 1; lane < problem.path(); ++lane)
      starts[lane] = endOf(lane - 1) + problem.latency[lane];
    double last = 0; // end of the backwards of chunks 0 to `chunk` and their W
    for (int chunk = 0; chunk < problem.chunks; ++chunk) {
      last = std::max(last, releaseOf(chunk));
      drains[chunk] = last - endOf(problem.backwardOf(chunk));
    }
  }

  double largest() const {
    double bound = 0;
    for (int rank = 0; rank < problem.shape.stages; ++rank) {
      bound = std::max(bound, ofWork(rank));
      if (int64_t(problem.shape.repeats) * problem.microbatches >=
          problem.bound)
        bound = std::max(bound, ofMemory(rank));
    }
    if (problem.shape.repeats == 1 && problem.bound < INT_MAX)
      bound = std::max(bound, ofRounds());
    return bound;
  }

private:
  const Problem &problem;
  // Times of a microbatch that never waits.
  std::vector<double> starts; // by lane of the path
  std::vector<double> drains; // by chunk

  double endOf(int lane) const { return starts[lane] + problem.cost[lane]; }
  double weight(int chunk) const {
    return problem.split ? problem.cost[problem.weightOf(chunk)] : 0;
  }
  /// The end of the action that frees the activation of `chunk`.
  double releaseOf(int chunk) const {
    return endOf(problem.backwardOf(chunk)) + weight(chunk);
  }
  double lifeOf(int chunk) const { return releaseOf(chunk) - starts[chunk]; }
  double onPath(int chunk) const {
    return problem.cost[chunk] + problem.cost[problem.backwardOf(chunk)];
  }
  /// Least time after the last action that frees an activation of `chunk`.
  double afterRelease(int chunk) const {
    return problem.split ? 0 : drains[chunk];
  }

  /// `path` and `work`.
  double ofWork(int rank) const {
    double path = 0, weights = 0, bound = 0;
    for (int row = problem.shape.repeats; row-- > 0;) {
      int chunk = problem.shape.chunkOf(rank, row);
      path += problem.microbatches * onPath(chunk);
      weights += problem.microbatches * weight(chunk);
      bound = std::max(bound,
                       starts[chunk] + path + std::max(drains[chunk], weights));
    }
    return bound;
  }

  double ofMemory(int rank) const {
    double life = 0, forward = kNever, release = kNever;
    for (int row = 0; row < problem.shape.repeats; ++row) {
      int chunk = problem.shape.chunkOf(rank, row);
      life += problem.microbatches * lifeOf(chunk);
      forward = std::min(forward, problem.cost[chunk]);
      release = std::min(
          release, problem.cost[problem.split ? problem.weightOf(chunk)
                                              : problem.backwardOf(chunk)]);
    }
    int first = problem.shape.chunkOf(rank, 0);
    return starts[first] + life / problem.bound +
           (problem.bound - 1) / 2.0 * (forward + release) +
           afterRelease(first);
  }

  double ofRounds() const {
    int64_t rounds = (problem.microbatches - 1) / problem.bound;
    int entered = (problem.microbatches - 1) % problem.bound + 1;
    double bound = 0, back = 0;
    // `back`: the earliest end of the backward of microbatch `entered` - 1.
    for (int chunk = problem.chunks; chunk-- > 0;) {
      int lane = problem.backwardOf(chunk);
      back = std::max(back + problem.latency[lane] + problem.cost[lane],
                      starts[chunk] + entered * onPath(chunk));
      bound = std::max(bound, back + weight(chunk) +
                                  double(rounds) * lifeOf(chunk) +
                                  afterRelease(chunk));
    }
    return bound;
  }
};

} // namespace

double lowerBoundOf(const Problem &problem) {
  return Bounds(problem).largest();
}

} // namespace rota::pipe
