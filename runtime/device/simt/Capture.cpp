// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/Capture.h"

#include <algorithm>

namespace rota::simt {

std::vector<size_t> randomOrder(const Graph &graph, std::mt19937_64 &random) {
  std::vector<uint64_t> priorities;
  std::vector<size_t> missing; // predecessors of each node
  std::vector<std::vector<size_t>> successors(graph.size());
  std::vector<size_t> ready, order;
  for (size_t node = 0; node < graph.size(); ++node) {
    priorities.push_back(random());
    missing.push_back(graph[node].after.size());
    for (size_t before : graph[node].after)
      successors[before].push_back(node);
    if (missing[node] == 0)
      ready.push_back(node);
  }
  while (!ready.empty()) {
    auto next =
        std::max_element(ready.begin(), ready.end(), [&](size_t a, size_t b) {
          return priorities[a] < priorities[b];
        });
    size_t node = *next;
    ready.erase(next);
    order.push_back(node);
    for (size_t successor : successors[node])
      if (--missing[successor] == 0)
        ready.push_back(successor);
  }
  return order;
}

GraphRun::GraphRun(std::shared_ptr<GraphExecutable> executable,
                   const StreamOrder &order)
    : executable(std::move(executable)), order(order),
      ends(this->executable->graph.size()) {}

void GraphRun::begin(const Lane &stream) { before = order.now(stream); }

Lane &GraphRun::enter(size_t node) {
  const GraphNode &entered = executable->graph[node];
  Lane &lane = executable->lanes[entered.lane];
  lane.before = join(lane.before, before);
  for (size_t earlier : entered.after)
    lane.before = join(lane.before, ends[earlier]);
  return lane;
}

void GraphRun::leave(size_t node) {
  ends[node] = order.now(executable->lanes[executable->graph[node].lane]);
}

void GraphRun::end(Lane &stream) const {
  stream.before = join(stream.before, before);
  for (const Clock &clock : ends)
    stream.before = join(stream.before, clock);
}

void Capture::add(Work work, NodeSet &last, const StreamQueue *stream) {
  auto lane = std::find(lanes.begin(), lanes.end(), stream);
  if (lane == lanes.end())
    lane = lanes.insert(lanes.end(), stream);
  graph.push_back({std::move(work), std::move(last),
                   static_cast<size_t>(lane - lanes.begin())});
  last = {graph.size() - 1};
}

bool Capture::isJoined(const NodeSet &last) const {
  std::vector<bool> before(graph.size());
  for (size_t node : last)
    before[node] = true;
  for (size_t node = graph.size(); node-- > 0;)
    if (before[node])
      for (size_t earlier : graph[node].after)
        before[earlier] = true;
  return std::find(before.begin(), before.end(), false) == before.end();
}

} // namespace rota::simt
