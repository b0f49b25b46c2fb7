// SPDX-License-Identifier: Apache-2.0
//
// The thread of a rank that runs the second halves of pairs.
#ifndef ROTA_RUNTIME_TRAIN_RANK_PAIRTHREAD_H
#define ROTA_RUNTIME_TRAIN_RANK_PAIRTHREAD_H

#include "runtime/threads/StartThread.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace rota {

/// Runs one function at a time beside the calling thread. It keeps its thread,
/// for which the products of a stage are compiled once.
class PairThread {
public:
  PairThread()
      : thread(startThread({"pairs of actions"}, [this] { serve(); })) {}
  ~PairThread() {
    {
      std::lock_guard lock(mutex);
      isClosing = true;
    }
    changed.notify_all();
    thread.join();
  }
  PairThread(const PairThread &) = delete;
  PairThread &operator=(const PairThread &) = delete;

  /// Runs `work` on the thread and `own` here; returns when both are done.
  /// Throws what one of them threw, `own` first.
  void run(std::function<void()> work, const std::function<void()> &own) {
    {
      std::lock_guard lock(mutex);
      next = std::move(work);
      thrown = nullptr;
    }
    changed.notify_all();
    std::exception_ptr ownFailure;
    try {
      own();
    } catch (...) {
      ownFailure = std::current_exception();
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !next; });
    if (!ownFailure)
      ownFailure = thrown;
    if (ownFailure)
      std::rethrow_exception(ownFailure);
  }

private:
  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return isClosing || next; });
      if (isClosing)
        return;
      lock.unlock();
      std::exception_ptr failure;
      try {
        next();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      thrown = failure;
      next = nullptr;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> next; // empty: the thread is idle
  std::exception_ptr thrown;
  bool isClosing = false;
  std::thread thread; // last: it uses the others
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_PAIRTHREAD_H
