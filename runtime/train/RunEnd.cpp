// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/RunEnd.h"
#include "runtime/train/Gather.h"

#include <algorithm>
#include <csignal>

namespace rota {

static volatile std::sig_atomic_t interrupted = 0;

static void onInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

void catchInterrupts() {
  interrupted = 0;
  std::signal(SIGINT, onInterrupt);
}

double RunEnd::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

int64_t RunEnd::lastStep() const {
  return options.stopAfter > 0 ? options.stopAfter : options.steps;
}

bool RunEnd::isLast(Rank &rank, int64_t t) const {
  bool over = options.timeLimit > 0 && seconds() >= options.timeLimit;
  return decideOnRankZero(rank, t == lastStep() || over || interrupted);
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
