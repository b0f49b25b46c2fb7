// SPDX-License-Identifier: Apache-2.0
//
// Threads that the system may refuse, by a limit on the processes of a user
// (`ulimit -u`), on those of a control group (pids.max), or for want of memory.
#ifndef ROTA_RUNTIME_THREADS_STARTTHREAD_H
#define ROTA_RUNTIME_THREADS_STARTTHREAD_H

#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace rota {

/// What a thread is for, in messages: thread `number` of `count` for `work`.
struct ThreadPurpose {
  const char *work;
  int number = 1, count = 1;
};

/// "cannot start thread 2 of 4 for ranks: Resource temporarily unavailable",
/// and what sets the limit.
std::string refusalText(const ThreadPurpose &purpose,
                        const std::system_error &refusal);

/// Starts a thread. Throws RunError when the system refuses it. A constructor
/// that starts several threads delegates to one that starts none, so that the
/// destructor joins those that were started.
std::thread startThread(const ThreadPurpose &purpose,
                        std::function<void()> body);

/// Threads for work that fewer threads do as well.
struct StartedThreads {
  std::vector<std::thread> threads;
  std::string refusal; // why these are fewer than asked for; else empty
};

/// Starts as many of `count` threads that run `body` as the system allows. No
/// exception leaves it.
StartedThreads startAllowedThreads(const char *work, int count,
                                   const std::function<void()> &body);

/// Runs body(i) on `count` threads at once and waits for all; then throws the
/// exception that was thrown first, if any. Throws RunError, and runs nothing,
/// when the system refuses one of the threads.
void runTogether(const char *work, int count,
                 const std::function<void(int)> &body);

/// Why the system refuses `count` threads at a time; empty where it does not.
/// No exception leaves it.
std::string refusalOf(const char *work, int count);

} // namespace rota

#endif // ROTA_RUNTIME_THREADS_STARTTHREAD_H
