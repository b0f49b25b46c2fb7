// SPDX-License-Identifier: Apache-2.0
//
// The threads and the time of a search.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_WORK_H
#define ROTA_TOOLS_PLANNER_SEARCH_WORK_H

#include "tools/planner/search/SearchRequest.h"

#include <atomic>
#include <chrono>

namespace rota {

class SearchWork {
public:
  explicit SearchWork(const SearchRequest &request) : request(request) {}

  /// Calls task(i) for each i below `count`, on several threads. Once the time
  /// is over, no further call begins.
  void run(size_t count, const std::function<void(size_t)> &task);

  /// Tells of progress, from the thread of the search.
  void report(const SearchProgress &progress) const {
    if (request.progress)
      request.progress(progress);
  }

  double seconds() const;
  /// Whether the time is over; work that asks is cut then.
  bool isOver() { return !hasLeft(0); }
  /// Whether so large a share of the time is left; work that asks is cut else.
  bool hasLeft(double share);
  bool wasCut() const { return cut; }

private:
  const SearchRequest &request;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::atomic<bool> cut = false;
};

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_WORK_H
