// SPDX-License-Identifier: Apache-2.0
//
// Work of a rank beside its training.
#ifndef ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H
#define ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H

#include "runtime/threads/StartThread.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <system_error>

namespace rota {

/// Runs one function at a time on a thread of its own.
class BackgroundTask {
public:
  enum class Status { Done, Running, Failed };

  /// `purpose`: of its thread, in messages.
  explicit BackgroundTask(const char *purpose) : purpose(purpose) {}
  ~BackgroundTask() {
    cancel();
    wait();
  }
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;

  /// Starts `work`; the one before is done. The work should end soon with an
  /// exception after its argument has become true. Work for which the system
  /// refuses a thread has failed.
  void start(std::function<void(const std::atomic<bool> &isCancelled)> work) {
    wait();
    isCancelled = false;
    auto run = [this, work = std::move(work)] {
      try {
        work(isCancelled);
        return std::string();
      } catch (const std::exception &error) {
        return std::string(error.what());
      }
    };
    try {
      outcome = std::async(std::launch::async, std::move(run));
    } catch (const std::system_error &refusal) {
      // Not on this thread: the work may wait for that of other ranks.
      std::promise<std::string> refused;
      refused.set_value(refusalText({purpose}, refusal));
      outcome = refused.get_future().share();
    }
  }

  /// Done before the first start.
  Status now() const {
    if (outcome.valid() && !isOver(std::chrono::seconds(0)))
      return Status::Running;
    return message().empty() ? Status::Done : Status::Failed;
  }
  void wait() const {
    if (outcome.valid())
      outcome.wait();
  }
  /// Waits for the work's end, but no longer than `most`.
  void waitFor(std::chrono::milliseconds most) const {
    if (outcome.valid())
      isOver(most);
  }
  void cancel() { isCancelled = true; }
  /// The failure that ended the work, which is over; empty where none did.
  std::string message() const {
    return outcome.valid() ? outcome.get() : std::string();
  }

private:
  template <typename Duration> bool isOver(Duration most) const {
    return outcome.wait_for(most) == std::future_status::ready;
  }

  const char *const purpose;
  std::atomic<bool> isCancelled = false;
  std::shared_future<std::string> outcome; // the failure's message, or empty
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H
