// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/RunEnd.h"
#include "runtime/train/Gather.h"
#include "runtime/train/Signals.h"

#include <algorithm>

namespace rota {

double RunEnd::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

int64_t RunEnd::lastStep() const {
  return options.stopAfter > 0 ? options.stopAfter : options.steps;
}

StepEnd RunEnd::decide(Rank &rank, int64_t t, bool saves) const {
  bool over = options.timeLimit > 0 && seconds() >= options.timeLimit;
  bool interrupted = isInterrupted();
  std::vector<bool> all = decideTogether(
      rank, {t == lastStep() || over || interrupted, saves, interrupted});
  return {all[0], all[1], all[2]};
}

double RunEnd::secondsLeft(int64_t t) const {
  double elapsed = seconds();
  double left = elapsed / static_cast<double>(t - firstDone) *
                static_cast<double>(lastStep() - t);
  if (options.timeLimit > 0)
    left = std::min(left, options.timeLimit - elapsed);
  return left;
}

} // namespace rota
