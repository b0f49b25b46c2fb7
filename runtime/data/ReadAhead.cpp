// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/ReadAhead.h"
#include "runtime/threads/StartThread.h"

#include <sys/resource.h>

namespace rota {

ReadAhead::ReadAhead()
    : thread(startThread({"reading data ahead"}, [this] { work(); })) {}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  thread.join();
}

void ReadAhead::push(std::function<void()> function) {
  {
    std::lock_guard lock(mutex);
    waiting.push_back(std::move(function));
  }
  changed.notify_one();
}

void ReadAhead::work() {
  // On Linux 0 is the calling thread here. Failure changes speed alone.
  setpriority(PRIO_PROCESS, 0, 10);
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !waiting.empty(); });
    if (stopping)
      return;
    std::function<void()> function = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    function();
    function = nullptr; // without the lock
    lock.lock();
  }
}

} // namespace rota
