// SPDX-License-Identifier: Apache-2.0
//
// See PeakUsage.h.
#include "passes/pipeline/timeline/PeakUsage.h"

#include <algorithm>

namespace rota::pipe {
namespace {

/// A count and its largest value.
struct PeakCount {
  int now = 0, peak = 0;
  void operator+=(int change) { peak = std::max(peak, now += change); }
};

/// Gradients take memory from their first action's start to the end of their
/// reduction. 0 without reductions.
int peakGradients(const Timeline &timeline, int rank,
                  const std::vector<TimeSpan> &spans) {
  std::vector<std::pair<double, int>> changes;
  std::vector<bool> isBegun(timeline.shape.rows() + 1); // per row of chunks
  bool reduces = false;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Action &action = timeline.ranks[rank][i];
    int row = timeline.shape.rowOf(action.chunk);
    if (action.kind == ActionKind::ReduceGrad) {
      changes.push_back({spans[i].end, -1});
      isBegun[row] = false;
      reduces = true;
    } else if (makesGradient(action.kind)) {
      if (!isBegun[row])
        changes.push_back({spans[i].start, 1});
      isBegun[row] = true;
    }
  }
  if (!reduces)
    return 0;
  // Ends come first among changes at one time.
  std::sort(changes.begin(), changes.end());
  PeakCount gradients;
  for (auto [time, change] : changes)
    gradients += change;
  return gradients.peak;
}

/// The row with the F of each pair in front: what a pair begins to hold is
/// there before what it frees has gone.
std::vector<Action> forwardsFirst(std::vector<Action> row) {
  for (size_t i = 1; i < row.size(); ++i)
    if (row[i - 1].startsPair && row[i].kind == ActionKind::Forward) {
      std::swap(row[i - 1], row[i]);
      ++i;
    }
  return row;
}

} // namespace

void countPeakUsage(const Timeline &timeline, int rank, bool communicates,
                    const std::vector<TimeSpan> &spans, RankUsage &report) {
  const Shape &shape = timeline.shape;
  PeakCount live, forward, backward, windows, offloaded;
  for (const Action &action : forwardsFirst(timeline.ranks[rank])) {
    int chunk = action.chunk, m = action.microbatch;
    switch (ActionKind kind = action.kind) {
    case ActionKind::RecvForward:
      forward += 1;
      break;
    case ActionKind::RecvBackward:
      backward += 1;
      break;
    case ActionKind::Forward:
      live += 1;
      if (communicates && chunk > 0 && shape.sendsForward(chunk - 1, m))
        forward += -1;
      break;
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      if (communicates && chunk + 1 < shape.chunks() &&
          shape.sendsBackward(chunk + 1, m))
        backward += -1;
      if (kind == ActionKind::Backward)
        live += -1;
      break;
    case ActionKind::BackwardWeight:
      live += -1;
      break;
    case ActionKind::Unshard:
      windows += 1;
      break;
    case ActionKind::Reshard:
      windows += -1;
      break;
    case ActionKind::Offload:
      live += -1;
      offloaded += 1;
      break;
    case ActionKind::Fetch:
      live += 1;
      offloaded += -1;
      break;
    default:
      break;
    }
  }
  report.peakGradients = peakGradients(timeline, rank, spans);
  report.peakLive = live.peak;
  report.peakReceivedForward = forward.peak;
  report.peakReceivedBackward = backward.peak;
  report.peakWindows = windows.peak;
  report.peakOffloaded = offloaded.peak;
}

} // namespace rota::pipe
