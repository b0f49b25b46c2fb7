// SPDX-License-Identifier: Apache-2.0
//
// The host's time for each part of a step, for profiles.
#ifndef ROTA_RUNTIME_TRAIN_STEP_PHASETIMES_H
#define ROTA_RUNTIME_TRAIN_STEP_PHASETIMES_H

#include "runtime/device/Profile.h"

#include <chrono>

namespace rota {

class PhaseTimes {
public:
  /// Adds the time of `body` to a phase. On a GPU that is the time of asking.
  template <typename F> void timed(const char *phase, F body) {
    auto begin = std::chrono::steady_clock::now();
    body();
    add(phase,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count());
  }

  void add(const char *phase, double seconds) {
    Profile::Entry &entry = phases[phase];
    ++entry.calls;
    entry.seconds += seconds;
  }

  /// Forgets what was added.
  void clear() { phases.clear(); }

  const Profile::Table &table() const { return phases; }

private:
  Profile::Table phases;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_PHASETIMES_H
