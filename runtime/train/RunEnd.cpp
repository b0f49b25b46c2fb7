// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/RunEnd.h"
#include "runtime/train/Signals.h"

#include <algorithm>
#include <array>

namespace rota {

double RunEnd::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

int64_t RunEnd::lastStep() const {
  return options.stopAfter > 0 ? options.stopAfter : options.steps;
}

StepEnd RunEnd::decide(int64_t t, bool isDue, bool asksToSave) {
  constexpr size_t kAsks = 3; // to end, to save, because of a signal
  bool over = options.timeLimit > 0 && seconds() >= options.timeLimit;
  bool interrupted = isInterrupted();
  std::array<bool, kAsks> asked{};
  auto take = [&] {
    std::vector<double> all = earlier.finish();
    for (size_t i = 0; i < all.size(); ++i)
      asked[i % kAsks] |= all[i] != 0.0;
  };
  auto give = [&](bool saves) {
    earlier.start(
        {double(over || interrupted), double(saves), double(interrupted)});
  };
  if (asking == Asking::Waits)
    give(asksToSave);
  if (earlier.isOpen())
    take();
  StepEnd ends = {t == lastStep() || asked[0], isDue || asked[1], asked[2]};
  // The checkpoint that follows is the one that this rank asks for.
  if (asking == Asking::Later && !ends.isLast)
    give(asksToSave && !ends.saves);
  return ends;
}

void RunEnd::settle() {
  if (earlier.isOpen())
    earlier.finish();
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
