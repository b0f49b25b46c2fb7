// SPDX-License-Identifier: Apache-2.0
//
// The speed at which a rank computes while transfers take a share of its
// device, for EventRun.
#ifndef ROTA_RUNTIME_PROGRAM_WORKSPEED_H
#define ROTA_RUNTIME_PROGRAM_WORKSPEED_H

#include <algorithm>
#include <vector>

namespace rota {

/// Start and end, in any unit of time.
struct TimeSpan {
  double start = 0, end = 0;
};

/// 1, less the shares of the transfers that run, but not less than 0.
class WorkSpeed {
public:
  /// A transfer takes `share` of the speed in that time. Nobody asks about
  /// times before `now` any more.
  void slowDown(const TimeSpan &span, double share, double now) {
    std::erase_if(slowed,
                  [&](const Slowed &other) { return other.span.end <= now; });
    if (span.end > span.start)
      slowed.push_back({span, share});
  }

  /// When so much work is done that begins at `start`.
  double endOf(double start, double work) const {
    if (work <= 0)
      return start;
    double end = start;
    walk(start, [&](double until, double speed) {
      double done = speed * (until - end);
      if (done >= work) {
        end += work / speed;
        return false;
      }
      work -= done;
      end = until;
      return true;
    });
    return end;
  }

  /// The work that is done in `span`.
  double workIn(const TimeSpan &span) const {
    double work = 0, at = span.start;
    walk(span.start, [&](double until, double speed) {
      work += speed * (std::min(until, span.end) - at);
      at = until;
      return at < span.end;
    });
    return work;
  }

private:
  struct Slowed {
    TimeSpan span;
    double share = 0;
  };
  std::vector<Slowed> slowed;

  static constexpr double kForEver = 1e300;

  /// Calls `piece(until, speed)` for the times of equal speed from `time` on,
  /// until it returns false. The last piece has no end.
  template <typename Piece> void walk(double time, Piece piece) const {
    bool goesOn = true;
    while (goesOn) {
      double until = kForEver, speed = 1;
      for (const auto &[span, share] : slowed) {
        if (span.start <= time && time < span.end)
          speed -= share;
        for (double edge : {span.start, span.end})
          if (edge > time)
            until = std::min(until, edge);
      }
      goesOn = piece(until, std::max(0.0, speed)) && until < kForEver;
      time = until;
    }
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_WORKSPEED_H
