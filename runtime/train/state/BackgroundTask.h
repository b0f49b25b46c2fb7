// SPDX-License-Identifier: Apache-2.0
//
// Work of a rank beside its training.
#ifndef ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H
#define ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <string>

namespace rota {

/// Runs one function at a time on a thread of its own.
class BackgroundTask {
public:
  enum class Status { Done, Running, Failed };

  BackgroundTask() = default;
  ~BackgroundTask() {
    cancel();
    wait();
  }
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;

  /// Starts `work`; the one before is done. The work should end soon with an
  /// exception after its argument has become true.
  void start(std::function<void(const std::atomic<bool> &isCancelled)> work) {
    wait();
    isCancelled = false;
    outcome = std::async(std::launch::async, [this, work = std::move(work)] {
      try {
        work(isCancelled);
        return std::string();
      } catch (const std::exception &error) {
        return std::string(error.what());
      }
    });
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

  std::atomic<bool> isCancelled = false;
  std::shared_future<std::string> outcome; // the failure's message, or empty
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H
