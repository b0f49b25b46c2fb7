// SPDX-License-Identifier: Apache-2.0
//
// In two phases: first the intervals of uses over which each chunk stays
// gathered, then the start of each gather. 2 stages, 3 repeats, the row of rank
// 0, N = 2; a letter for each repeat's run of uses:
//
//   uses        a a a b b b c c c C C C B B B A A A    small: F, capital: B
//   window 0    a . . | c . . . . . | a . . . . .      'a' starts while B runs
//   window 1    b . . . . . . . . . . . . . .
//
// The first phase is Belady's algorithm on demand, which needs the fewest
// gathers. The second starts the same gathers earlier ("conservative"
// prefetching of Cao, Felten, Karlin and Li, SIGMETRICS 1995) and adds none.
#include "passes/pipeline/timeline/WeightWindows.h"

#include "passes/pipeline/timeline/Insertions.h"

#include <limits>
#include <set>
#include <tuple>

namespace rota::pipe {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

/// Weights that stay gathered over the uses [first, last] of a rank, counted in
/// its compute actions.
struct GatherInterval {
  int chunk, first, last;
};

/// For each use, the next one of the same chunk, or kNever.
std::vector<int> nextUses(const std::vector<Action> &uses, const Shape &shape) {
  std::vector<int> next(uses.size(), kNever);
  std::vector<int> later(shape.rows() + 1, kNever); // per row of chunks
  for (int i = int(uses.size()) - 1; i >= 0; --i) {
    int &following = later[shape.rowOf(uses[i].chunk)];
    next[i] = following;
    following = i;
  }
  return next;
}

/// Plans a gather for each use of a chunk that is not gathered. It replaces the
/// chunk whose next use is last; of chunks without a next use, the one whose
/// last use is the earliest. A use is of the time of its whole pair, so the
/// chunks of both halves are gathered at once.
std::vector<GatherInterval> planGatherIntervals(const std::vector<Action> &uses,
                                                const Shape &shape,
                                                int window) {
  std::vector<int> next = nextUses(uses, shape);
  std::vector<GatherInterval> intervals;
  // The gathered chunks, farthest next use last: next use, negative last use,
  // number of the interval.
  std::set<std::tuple<int, int, int>> gathered;
  std::vector<int> current(shape.rows() + 1, -1); // interval per row
  for (int i = 0; i < int(uses.size()); ++i) {
    int &number = current[shape.rowOf(uses[i].chunk)];
    int first = firstAtOnce(uses, i), last = lastAtOnce(uses, i);
    if (number >= 0) {
      gathered.erase({i, -intervals[number].last, number});
      intervals[number].last = last;
    } else {
      if (int(gathered.size()) == window) {
        auto victim = std::prev(gathered.end());
        if (first < i && // the other half needs its chunk
            std::get<2>(*victim) == current[shape.rowOf(uses[first].chunk)])
          --victim;
        current[shape.rowOf(intervals[std::get<2>(*victim)].chunk)] = -1;
        gathered.erase(victim);
      }
      number = intervals.size();
      intervals.push_back({uses[i].chunk, first, last});
    }
    gathered.insert({next[i], -last, number});
  }
  return intervals;
}

/// A gather for each use; with `joins`, one for uses of a chunk that follow
/// each other, as the F and the B of the last layer.
std::vector<GatherInterval> intervalsOfEachUse(const std::vector<Action> &uses,
                                               bool joins) {
  std::vector<GatherInterval> intervals;
  for (int i = 0; i < int(uses.size()); ++i) {
    int first = firstAtOnce(uses, i);
    if (joins && i > 0 && uses[i - 1].chunk == uses[i].chunk)
      intervals.back().last = lastAtOnce(uses, i);
    else if (first == i || uses[first].chunk != uses[i].chunk)
      intervals.push_back({uses[i].chunk, first, lastAtOnce(uses, i)});
  }
  return intervals;
}

/// The RESHARD and UNSHARD actions to insert before each use of a rank, and,
/// last, after all uses.
Insertions placeGathers(const std::vector<GatherInterval> &intervals,
                        const std::vector<Action> &uses, const Shape &shape,
                        int window, int prefetch) {
  Insertions places(uses.size() + 1);
  std::vector<std::vector<int>> endsAt(uses.size() + 1); // chunks
  std::vector<bool> isOpen(shape.rows() + 1);
  int open = 0;
  auto next = intervals.begin();
  for (int i = 0; i <= int(uses.size()); ++i) {
    if (endsPair(uses, i))
      continue;
    for (int chunk : endsAt[i]) {
      places[i].push_back({chunk, ActionKind::Reshard});
      isOpen[shape.rowOf(chunk)] = false;
      --open;
    }
    for (; next != intervals.end() && open < window &&
           !isOpen[shape.rowOf(next->chunk)] && next->first - i <= prefetch;
         ++next) {
      places[i].push_back({next->chunk, ActionKind::Unshard});
      isOpen[shape.rowOf(next->chunk)] = true;
      ++open;
      endsAt[next->last + 1].push_back(next->chunk);
    }
  }
  return places;
}

/// Adds REDUCE_GRAD after each chunk's last gradient, or after each.
void placeReductions(const std::vector<Action> &uses, const Shape &shape,
                     bool each, Insertions &places) {
  auto reduce = [&](int chunk, int last) {
    places[last + 1].push_back({chunk, ActionKind::ReduceGrad});
  };
  if (!each) {
    for (auto [chunk, last] : wholeGradients(uses, shape))
      reduce(chunk, last);
    return;
  }
  for (int i = 0; i < int(uses.size()); ++i)
    if (makesGradient(uses[i].kind))
      reduce(uses[i].chunk, lastAtOnce(uses, i));
}

std::string checkRequest(const Shape &shape, const GatherRequest &request) {
  const GatherMode mode = request.mode;
  int each = shape.rows() + shape.hasUnpipelined;
  if (mode == GatherMode::PerRepeat && each < 2)
    return "expected at least 2 repeats to gather weights 'per-repeat', got " +
           std::to_string(each) + " ('once' gathers as often)";
  if (mode == GatherMode::Once && request.window)
    return "a window is for gathering weights 'per-repeat' or "
           "'per-iteration', got 'once' and a window of " +
           std::to_string(*request.window);
  if (mode == GatherMode::Once && request.prefetch)
    return "a prefetch distance is for gathering weights 'per-repeat' or "
           "'per-iteration', got 'once' and a distance of " +
           std::to_string(*request.prefetch);
  if (request.window && *request.window < 1)
    return "expected a window of at least 1 chunk, got " +
           std::to_string(*request.window);
  if (request.prefetch && *request.prefetch < 0)
    return "expected a prefetch distance of at least 0 actions, got " +
           std::to_string(*request.prefetch);
  return "";
}

/// A pair needs the weights of both halves at once.
std::string checkPairs(const Timeline &timeline, int window) {
  for (const std::vector<Action> &row : timeline.ranks)
    for (size_t i = 0; i < row.size(); ++i)
      if (window < 2 && endsPair(row, i) && row[i].chunk != row[i - 1].chunk)
        return "expected a window of at least 2 chunks for the pair " +
               textOf(row, i - 1) + textOf(row, i) + ", got " +
               std::to_string(window);
  return "";
}

} // namespace

GatherMode resolvedMode(GatherMode mode, const Shape &shape) {
  if (mode != GatherMode::Auto)
    return mode;
  return shape.rows() > 1 ? GatherMode::PerRepeat : GatherMode::Once;
}

std::optional<Timeline> gatherWeights(const Timeline &timeline,
                                      GatherRequest request,
                                      std::string &error) {
  const Shape &shape = timeline.shape;
  request.mode = resolvedMode(request.mode, shape);
  error = checkRequest(shape, request);
  if (!error.empty())
    return std::nullopt;
  bool once = request.mode == GatherMode::Once;
  bool isPerLayer = request.mode == GatherMode::PerLayer;
  bool each = request.mode == GatherMode::PerIteration || isPerLayer;
  bool gathers = !hasAny(timeline, ActionKind::Unshard);
  bool reduces = !hasAny(timeline, ActionKind::ReduceGrad);
  Timeline result = timeline;
  if (request.window || gathers)
    result.window = once ? 0 : request.window.value_or(kDefaultWindow);
  int window = result.window ? result.window : kNever;
  error = checkPairs(timeline, window);
  if (!error.empty())
    return std::nullopt;
  for (std::vector<Action> &row : result.ranks) {
    std::vector<Action> uses = computeOf(row);
    Insertions places(uses.size() + 1);
    if (gathers)
      places =
          placeGathers(each ? intervalsOfEachUse(uses, isPerLayer)
                            : planGatherIntervals(uses, shape, window),
                       uses, shape, window, request.prefetch.value_or(kNever));
    if (reduces)
      placeReductions(uses, shape, each, places);
    row = insertActions(row, places);
  }
  return result;
}

} // namespace rota::pipe
