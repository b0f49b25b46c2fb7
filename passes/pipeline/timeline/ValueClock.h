// SPDX-License-Identifier: Apache-2.0
//
// The rule by which a compute action depends on those of other chunks, for the
// simulator and for schedulers that place an action when it is ready.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_VALUECLOCK_H
#define ROTA_PASSES_PIPELINE_TIMELINE_VALUECLOCK_H

#include "ir/pipe/Timeline.h"
#include "runtime/program/MessageClock.h"

namespace rota::pipe {

/// The times at which chunks have made their values: F its activation, B or I
/// the gradient of its input. Times are in any unit, 0 or later.
class ValueClock {
public:
  explicit ValueClock(const Shape &shape)
      : shape(shape),
        ends(2 * size_t(shape.chunks()) * shape.microbatches, kNotYet) {}

  /// Notes that `action` ends at `time`. W makes no value.
  void end(const Action &action, double time) {
    if (action.kind != ActionKind::BackwardWeight)
      ends[indexOf(action.chunk, action)] = time;
  }

  /// When the value that `action` reads has been made: 0 when it reads none,
  /// kNotYet when its maker has not ended.
  double made(const Action &action) const {
    int producer = shape.producerOf(action);
    return producer == kNoChunk ? 0 : ends[indexOf(producer, action)];
  }

  /// True when `action` reads a value of another rank.
  bool readsRemote(const Action &action) const {
    int producer = shape.producerOf(action);
    return producer != kNoChunk &&
           shape.rankOf(producer, action.microbatch) !=
               shape.rankOf(action.chunk, action.microbatch);
  }

  /// When the value that `action` reads is on its rank, for timelines without
  /// sends and receives: a value of another rank comes `latency` later.
  double ready(const Action &action, double latency) const {
    double time = made(action);
    return time != kNotYet && readsRemote(action) ? time + latency : time;
  }

  /// True when that is so at `now`.
  bool isReady(const Action &action, double latency, double now) const {
    double time = ready(action, latency);
    return time != kNotYet && time <= now;
  }

private:
  size_t indexOf(int chunk, const Action &action) const {
    size_t row = size_t(isForward(action.kind)) * shape.chunks() + chunk;
    return row * shape.microbatches + action.microbatch;
  }

  Shape shape;
  std::vector<double> ends; // per direction, chunk and microbatch
};

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_VALUECLOCK_H
