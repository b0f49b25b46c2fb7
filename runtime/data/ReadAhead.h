// SPDX-License-Identifier: Apache-2.0
//
// A thread that prepares what will be needed next, at low priority.
#ifndef ROTA_RUNTIME_DATA_READAHEAD_H
#define ROTA_RUNTIME_DATA_READAHEAD_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace rota {

/// Any thread may call it.
class ReadAhead {
public:
  ReadAhead();
  /// Waits for the function that runs; those that have not begun never do.
  ~ReadAhead();
  ReadAhead(const ReadAhead &) = delete;
  ReadAhead &operator=(const ReadAhead &) = delete;

  /// Runs the function after those that were given before. Its result, or the
  /// exception that it throws, comes out of the future.
  template <typename F> auto start(F function) {
    using Result = decltype(function());
    auto task =
        std::make_shared<std::packaged_task<Result()>>(std::move(function));
    std::future<Result> result = task->get_future();
    push([task] { (*task)(); });
    return result;
  }

private:
  void push(std::function<void()> function);
  void work();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  bool stopping = false;
  std::thread thread; // last: it uses the others
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_READAHEAD_H
