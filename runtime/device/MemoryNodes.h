// SPDX-License-Identifier: Apache-2.0
//
// Memory nodes (NUMA): the cores of one reach its memory faster than that of
// other nodes. Ranks that are threads are spread over the nodes, in their
// order, so that neighbours in a pipeline are on the same node where possible;
// each node has a pool of its cores for its ranks. Where ranks do not divide
// evenly, or one rank computes on the cores of several nodes, one pool has all
// cores and memory alternates between the nodes, page by page. On a machine
// with one node nothing of this happens.
#ifndef ROTA_RUNTIME_DEVICE_MEMORYNODES_H
#define ROTA_RUNTIME_DEVICE_MEMORYNODES_H

#include <cstdint>
#include <sched.h>
#include <string>
#include <vector>

namespace rota {

struct MemoryNode {
  int number = 0; // in the operating system
  std::vector<int> cores;
};

/// The nodes with cores that the calling thread may run on, and these cores.
/// Empty where the system does not say. `folder`: another one in tests.
std::vector<MemoryNode>
memoryNodes(const std::string &folder = "/sys/devices/system/node");

/// Where ranks run, and where their memory is.
struct NodePlan {
  int pools = 1; // of cores; rank r uses pool r / ranksOfPool
  int ranksOfPool = 1;
  std::vector<MemoryNode> bound; // of each pool; empty: pools are not bound
  std::vector<MemoryNode> interleaved; // of all memory; empty: it is not

  /// The node of a rank; null where ranks are bound to none.
  const MemoryNode *nodeOf(int rank) const {
    return bound.empty() ? nullptr : &bound[rank / ranksOfPool];
  }
};

/// The plan for this many ranks of a process, which compute with `threads`
/// cores in total.
NodePlan planNodes(std::vector<MemoryNode> nodes, int ranks, int threads);

/// Binds the calling thread, and threads that it starts, to the cores of a node
/// for a scope. Null: to none.
class OnNode {
public:
  explicit OnNode(const MemoryNode *node);
  ~OnNode();
  OnNode(const OnNode &) = delete;
  OnNode &operator=(const OnNode &) = delete;

private:
  const bool isBound;
  cpu_set_t before;
};

/// Has memory that nobody has touched come from the rank's node, while that has
/// any, or from all nodes in turn, as the plan says. `begin` is a multiple of
/// the page size. False where the system refuses it, which costs time only.
bool placeMemory(const NodePlan &plan, int rank, void *begin, int64_t bytes);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_MEMORYNODES_H
