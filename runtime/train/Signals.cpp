// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Signals.h"

#include <atomic>
#include <csignal>

namespace rota {

static std::atomic<bool> interrupted = false, saveRequested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

static void onInterrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_IGN);
}

static void onSaveRequest(int) { saveRequested = true; }

void catchSignals() {
  interrupted = saveRequested = false;
  std::signal(SIGINT, onInterrupt);
  std::signal(SIGTERM, onInterrupt);
  if (std::signal(SIGHUP, onInterrupt) == SIG_IGN)
    std::signal(SIGHUP, SIG_IGN); // as nohup asks
  std::signal(SIGUSR1, onSaveRequest);
}

bool isInterrupted() { return interrupted; }

bool takeSaveRequest() { return saveRequested.exchange(false); }

} // namespace rota
