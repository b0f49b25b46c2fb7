// SPDX-License-Identifier: Apache-2.0
//
// Work that streams record instead of doing it, and the graph that becomes of
// it.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_CAPTURE_H
#define ROTA_RUNTIME_DEVICE_SIMT_CAPTURE_H

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/simt/Dispatcher.h"

#include <set>

namespace rota::simt {

/// Numbers of nodes.
using NodeSet = std::set<size_t>;

struct GraphNode {
  Work work;
  NodeSet after;
  size_t lane; // number of the stream among those of the capture
};

/// Nodes come after all that they wait for.
using Graph = std::vector<GraphNode>;

/// A graph that streams launch.
struct GraphExecutable {
  Graph graph;
  std::vector<Lane> lanes;              // by GraphNode::lane
  std::shared_ptr<const Record> latest; // the end of the latest launch
};

/// The clocks of one launch. With the dispatcher's mutex locked.
class GraphRun {
public:
  GraphRun(std::shared_ptr<GraphExecutable> executable,
           const StreamOrder &order);

  /// The launch begins, on a stream with that lane.
  void begin(const Lane &stream);
  /// The lane of a node that is about to run.
  Lane &enter(size_t node);
  void leave(size_t node);
  /// All nodes are done.
  void end(Lane &stream) const;

private:
  std::shared_ptr<GraphExecutable> executable;
  const StreamOrder &order;
  Clock before;
  std::vector<Clock> ends; // by node
};

/// A random order of the graph's nodes in which each comes after those that it
/// waits for.
std::vector<size_t> randomOrder(const Graph &graph, std::mt19937_64 &random);

struct Capture {
  cuda::StreamHandle origin;
  std::set<std::thread::id> threads = {}; // threads that have captured work
  Graph graph = {};
  std::vector<const StreamQueue *> lanes = {}; // streams with nodes
  bool invalid = false, ended = false;

  /// Adds a node of a stream after `last`, its position, which moves after it.
  void add(Work work, NodeSet &last, const StreamQueue *stream);
  /// Whether all work is before `last`, the position of the origin.
  bool isJoined(const NodeSet &last) const;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_CAPTURE_H
