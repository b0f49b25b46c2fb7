// SPDX-License-Identifier: Apache-2.0
//
// The thread that does the work of an emulated GPU's streams, one operation
// after another. The order across streams is random and unfriendly: each
// stream keeps a random priority for a random number of operations, and half
// of the streams rest until a thread waits. So an operation that should wait
// for another stream and does not is likely to run too early.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_DISPATCHER_H
#define ROTA_RUNTIME_DEVICE_SIMT_DISPATCHER_H

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace rota::simt {

using DispatchClock = std::chrono::steady_clock;

/// The work that a recorded event stands for.
struct Record {
  bool done = false;
  DispatchClock::time_point time; // when it was done
};

/// Throws when it fails; what() is the report.
using Work = std::shared_ptr<const std::function<void()>>;

/// The fields may be null.
struct StreamOperation {
  std::shared_ptr<const Record> after;
  Work work;
  std::shared_ptr<Record> completes;
};

/// The work that one stream has to do. Guarded by the dispatcher's mutex.
struct StreamQueue {
  std::deque<StreamOperation> operations;
  uint64_t asked = 0, done = 0; // operations since the stream was made
  bool closed = false;          // nothing is added any more

  // Its place among the streams, until `turns` is 0.
  uint64_t priority = 0;
  unsigned turns = 0;
  bool rests = false;
  DispatchClock::time_point restsSince;
};

class Dispatcher {
public:
  /// Starts the thread. The same seed draws the same priorities.
  explicit Dispatcher(uint64_t seed);
  /// Drops what has not begun.
  ~Dispatcher();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }

  std::shared_ptr<StreamQueue> open();
  /// With the mutex locked. The rest of the stream's operations still runs.
  void close(StreamQueue &queue);

  /// With the mutex locked. False, and nothing is added, after a failure.
  [[nodiscard]] bool push(StreamQueue &queue, StreamOperation operation);
  /// With the mutex locked: waits until the condition holds. False when work
  /// has failed before it does.
  bool wait(std::unique_lock<std::mutex> &lock,
            const std::function<bool()> &condition);
  /// Waits until all that streams have to do now is done. False on failure.
  bool drain();

  bool hasFailed();
  /// The report of the work that failed, or an empty text.
  const char *failureReport();

private:
  void run();
  StreamQueue *choose();
  void draw(StreamQueue &queue);
  void finish(StreamQueue &queue, const StreamOperation &operation);
  void fail(std::string text);

  /// A thread that waits, on its own stack.
  struct Waiter {
    const std::function<bool()> &condition;
    bool isMet = false;
  };

  std::mutex mutex;
  std::condition_variable workComes; // for the thread
  std::condition_variable progress;  // for threads that wait
  std::vector<Waiter *> waiters;
  std::vector<std::shared_ptr<StreamQueue>> queues;
  std::mt19937_64 random;
  DispatchClock::time_point restEnds; // the stream that choose() left out
  bool stopping = false, failed = false;
  std::string report; // written once, with `failed`
  std::thread thread;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_DISPATCHER_H
