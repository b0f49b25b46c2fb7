// SPDX-License-Identifier: Apache-2.0
//
// Work of a rank beside its training.
#ifndef ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H
#define ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace rota {

/// Runs one function at a time on a thread of its own.
class BackgroundTask {
public:
  enum class Status { Done, Running, Failed };

  BackgroundTask() = default;
  ~BackgroundTask() {
    isCancelled = true;
    wait();
  }
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;

  /// Starts `work`; the one before is done. The work should end soon with an
  /// exception after its argument has become true.
  void start(std::function<void(const std::atomic<bool> &isCancelled)> work) {
    wait();
    isCancelled = false;
    status = Status::Running;
    thread = std::thread([this, work = std::move(work)] {
      try {
        work(isCancelled);
        status = Status::Done;
      } catch (const std::exception &error) {
        failure = error.what();
        status = Status::Failed;
      }
    });
  }

  /// Done before the first start.
  Status now() const { return status; }
  void wait() {
    if (thread.joinable())
      thread.join();
  }
  void cancel() { isCancelled = true; }
  /// The failure that ended the work.
  const std::string &message() const { return failure; }

private:
  std::thread thread;
  std::atomic<Status> status = Status::Done;
  std::atomic<bool> isCancelled = false;
  std::string failure; // written before the status
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_BACKGROUNDTASK_H
