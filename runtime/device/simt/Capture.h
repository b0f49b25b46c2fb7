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
};

/// Nodes come after all that they wait for.
using Graph = std::vector<GraphNode>;

/// A random order of the graph's nodes in which each comes after those that it
/// waits for.
std::vector<size_t> randomOrder(const Graph &graph, std::mt19937_64 &random);

struct Capture {
  cuda::StreamHandle origin;
  int mode;
  std::thread::id beginner;
  std::set<std::thread::id> threads = {}; // threads that have captured work
  Graph graph = {};
  bool invalid = false, ended = false;

  /// Whether the calling thread may capture work: any in the relaxed mode. In
  /// the thread-local mode only the thread that began, which is stricter than
  /// NVIDIA's driver.
  bool admits(std::thread::id thread);
  /// Adds a node after `last`, the position of a stream, which moves after it.
  void add(Work work, NodeSet &last);
  /// Whether all work is before `last`, the position of the origin.
  bool isJoined(const NodeSet &last) const;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_CAPTURE_H
