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

} // namespace

void countPeakUsage(const Timeline &timeline, int rank, bool communicates,
                    RankUsage &report) {
  const Shape &shape = timeline.shape;
  PeakCount live, forward, backward, windows, offloaded;
  for (const auto &[chunk, kind, m] : timeline.ranks[rank])
    switch (kind) {
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
  report.peakLive = live.peak;
  report.peakReceivedForward = forward.peak;
  report.peakReceivedBackward = backward.peak;
  report.peakWindows = windows.peak;
  report.peakOffloaded = offloaded.peak;
}

} // namespace rota::pipe
