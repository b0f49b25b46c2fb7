// SPDX-License-Identifier: Apache-2.0
//
// The times of transfers, and the part of them for which a rank waits.
#ifndef ROTA_RUNTIME_TRAIN_RANK_TRANSFERTIMES_H
#define ROTA_RUNTIME_TRAIN_RANK_TRANSFERTIMES_H

#include "runtime/collective/Communicator.h"

#include <algorithm>

namespace rota {

/// Seconds of a transfer that are exposed where a rank waits for it from `time`
/// on: in which its bytes move. What a transfer waits for other ranks is no
/// part of its time. Between processes that begins when a first piece has come
/// or gone; a kernel of NCCL waits too.
inline double exposedSeconds(TransferTime span, double time) {
  return std::max(0.0, span.end - std::max(span.begin, time));
}

/// The times of a rank's transfers of one kind.
struct TransferTimes {
  int64_t count = 0;
  double seconds = 0.0; // in which bytes moved
  double waited = 0.0;  // seconds while the rank waited for nothing else

  /// The share of their time that was hidden by computing: 1 where none took
  /// any.
  double hidden() const { return seconds > 0 ? 1.0 - waited / seconds : 1.0; }
  TransferTimes &operator+=(const TransferTimes &other) {
    count += other.count;
    seconds += other.seconds;
    waited += other.waited;
    return *this;
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_TRANSFERTIMES_H
