// SPDX-License-Identifier: Apache-2.0
#include "runtime/threads/StartThread.h"
#include "runtime/Error.h"

#include <exception>
#include <fmt/format.h>
#include <future>
#include <mutex>
#include <utility>

namespace rota {

std::string refusalText(const ThreadPurpose &purpose,
                        const std::system_error &refusal) {
  std::string which =
      purpose.count > 1
          ? fmt::format("thread {} of {}", purpose.number, purpose.count)
          : "a thread";
  return fmt::format("cannot start {} for {}: {}; `ulimit -u` and pids.max of "
                     "a control group limit threads",
                     which, purpose.work, refusal.code().message());
}

std::thread startThread(const ThreadPurpose &purpose,
                        std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &refusal) {
    throw RunError(refusalText(purpose, refusal));
  }
}

StartedThreads startAllowedThreads(const char *work, int count,
                                   const std::function<void()> &body) {
  StartedThreads started;
  for (int i = 0; i < count && started.refusal.empty(); ++i)
    try {
      started.threads.emplace_back(body);
    } catch (const std::system_error &refusal) {
      started.refusal = refusalText({work, i + 1, count}, refusal);
    }
  return started;
}

void runTogether(const char *work, int count,
                 const std::function<void(int)> &body) {
  std::promise<bool> areAllStarted;
  std::shared_future<bool> begin = areAllStarted.get_future().share();
  std::mutex mutex;
  std::exception_ptr first;
  auto run = [&](int i) {
    if (!begin.get())
      return;
    try {
      body(i);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!first)
        first = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < count; ++i)
      threads.push_back(startThread({work, i + 1, count}, [&, i] { run(i); }));
  } catch (...) {
    first = std::current_exception();
  }
  areAllStarted.set_value(!first);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

std::string refusalOf(const char *work, int count) {
  try {
    runTogether(work, count, [](int) {});
  } catch (const RunError &refusal) {
    return refusal.what();
  }
  return "";
}

} // namespace rota
