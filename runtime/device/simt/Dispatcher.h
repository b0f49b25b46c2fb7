// SPDX-License-Identifier: Apache-2.0
//
// The thread that does the work of an emulated GPU's streams, one operation
// after another. The order across streams is random and unfriendly: each
// stream keeps a random priority for a random number of operations, and half
// of the streams rest until a thread waits. So an operation that should wait
// for another stream and does not is likely to run too early.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_DISPATCHER_H
#define ROTA_RUNTIME_DEVICE_SIMT_DISPATCHER_H

#include "runtime/device/simt/StreamOrder.h"

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
  Clock clock;                    // all that it comes after
};

/// Throws when it fails; what() is the report.
using Run = std::function<void(const OrderedOperation &)>;
/// Called when a stream is asked for the work, under the dispatcher's mutex;
/// what it returns runs later. A graph's work is asked for in each launch.
using Work = std::shared_ptr<const std::function<Run()>>;

/// The fields may be null.
struct StreamOperation {
  std::shared_ptr<const Record> after;
  Run run;
  std::shared_ptr<Record> completes;
  /// Where the operation belongs to another lane than its stream's.
  std::function<Lane &()> enter = nullptr;
  /// Called at the end, with the stream's lane.
  std::function<void(Lane &)> leave = nullptr;
  Clock host = nullptr; // what the host had waited for when it asked
  std::function<bool()> isReady = nullptr; // HostWork::isReady
};

/// The work that one stream has to do. Guarded by the dispatcher's mutex.
struct StreamQueue {
  std::deque<StreamOperation> operations;
  Lane lane;
  Clock host = nullptr;         // of the last operation that was asked for
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
  Dispatcher(uint64_t seed, StreamOrder &order);
  /// Drops what has not begun.
  ~Dispatcher();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }

  std::shared_ptr<StreamQueue> open(std::string name);
  /// With the mutex locked. The rest of the stream's operations still runs.
  void close(StreamQueue &queue);

  /// With the mutex locked. False, and nothing is added, after a failure.
  [[nodiscard]] bool push(StreamQueue &queue, StreamOperation operation);
  /// With the mutex locked: waits until the condition holds. False when work
  /// has failed before it does.
  bool wait(std::unique_lock<std::mutex> &lock,
            const std::function<bool()> &condition);
  /// With the mutex locked: the host has waited for what is in the clock. What
  /// any thread asks for from now on comes after it, since threads may tell
  /// each other.
  void hostWaited(const Clock &clock) { host = join(host, clock); }
  /// With the mutex locked.
  StreamOrder &streamOrder() { return order; }
  /// With the mutex locked: the GPU fails with this report.
  void fail(std::string text);
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

  /// A thread that waits, on its own stack.
  struct Waiter {
    const std::function<bool()> &condition;
    bool isMet = false;
  };

  StreamOrder &order; // operations begin and end under the mutex
  Clock host;         // what the host has waited for
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
