// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/Work.h"
#include "runtime/threads/StartThread.h"

#include <algorithm>
#include <thread>

namespace rota {

void SearchWork::run(size_t count, const std::function<void(size_t)> &task) {
  std::atomic<size_t> next = 0;
  auto takeTasks = [&] {
    for (size_t i = next++; i < count && !isOver(); i = next++)
      task(i);
  };
  auto threads =
      int(std::min(count, size_t(std::max(request.limits.threads, 1))));
  // The same tasks are done where the system allows fewer.
  StartedThreads helpers =
      startAllowedThreads("the search", threads - 1, takeTasks);
  takeTasks();
  for (std::thread &helper : helpers.threads)
    helper.join();
}

double SearchWork::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

bool SearchWork::hasLeft(double share) {
  bool has = seconds() <= (1 - share) * request.limits.seconds;
  if (!has)
    cut = true;
  return has;
}

} // namespace rota
