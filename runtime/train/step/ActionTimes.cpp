// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/ActionTimes.h"
#include "runtime/train/step/Gather.h"

#include <algorithm>
#include <utility>

namespace rota {

ActionTimes::ActionTimes(Rank &rank, int64_t tracedRuns)
    : rank(rank), tracedRuns(tracedRuns),
      seconds(rank.stage().actions.size(), 0.0), firstSeconds(seconds) {
  double met = tracedRuns > 0 ? meetingTime(rank) : rank.host().now();
  double ago = rank.host().now() - met;
  transferOrigin = rank.communicator().now() - ago;
  computeOrigin = rank.device().secondsAt(rank.device().mark()) - ago;
}

void ActionTimes::beginRun(bool trains) {
  on = true;
  current = {false, trains, runs, {}};
}

void ActionTimes::endRun() {
  on = false;
  settle();
  previous = std::move(current);
  ++runs;
}

void ActionTimes::add(const Span &span) {
  if (on)
    current.spans.push_back(span);
}

void ActionTimes::add(int action, TransferTime span, double waitedFrom) {
  ActionKind kind = rank.stage().kindOf(action);
  if (current.trains)
    kindTimes[static_cast<int>(kind)] +=
        {1, span.end - span.begin, exposedSeconds(span, waitedFrom)};
  // The times of a GPU's transfers may be unknown.
  if (runs < tracedRuns && span.end > 0.0)
    recorded.push_back({rank.number(), rank.stageNumber(), action,
                        static_cast<int>(runs), current.trains,
                        span.begin - transferOrigin,
                        span.end - transferOrigin});
}

void ActionTimes::settle() {
  Device &device = rank.device();
  if (std::exchange(previous.isKnown, true))
    return;
  double lastBegin = 0.0, lastEnd = 0.0; // times of the span before
  for (const Span &span : previous.spans) {
    double begin = device.secondsAt(span.begin);
    double end = device.secondsAt(span.end);
    // Time in which both halves of a pair ran counts for the first.
    double shared = std::min(end, lastEnd) - std::max(begin, lastBegin);
    if (previous.trains)
      seconds[span.action] += end - begin - std::max(0.0, shared);
    lastBegin = begin;
    lastEnd = end;
    if (previous.number < tracedRuns)
      recorded.push_back({rank.number(), rank.stageNumber(), span.action,
                          static_cast<int>(previous.number), previous.trains,
                          begin - computeOrigin, end - computeOrigin});
  }
  if (previous.trains && ++trainingRuns == 1)
    firstSeconds =
        std::exchange(seconds, std::vector<double>(seconds.size(), 0.0));
  if (rank.profile())
    rank.profile()->settle(device);
  if (!previous.spans.empty())
    ends.push_back(previous.spans.back().end);
  for (auto kept = static_cast<size_t>(rank.program().accumulationSteps);
       ends.size() > kept; ends.pop_front())
    device.forget(ends.front());
}

const std::vector<TraceEvent> &ActionTimes::events() {
  settle();
  return recorded;
}

std::vector<double> ActionTimes::meanSeconds() {
  settle();
  if (trainingRuns < 2)
    return firstSeconds;
  std::vector<double> mean = seconds;
  for (double &value : mean)
    value /= static_cast<double>(trainingRuns - 1);
  return mean;
}

} // namespace rota
