// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/MemoryNodes.h"
#include "runtime/device/AvailableCores.h"

#include <algorithm>
#include <climits>
#include <fstream>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rota {

std::vector<MemoryNode> memoryNodes(const std::string &folder) {
  auto read = [&](const std::string &name) {
    std::ifstream file(folder + "/" + name);
    std::string line;
    std::getline(file, line);
    return parseCoreList(line);
  };
  cpu_set_t allowed = allowedCores();
  std::vector<MemoryNode> nodes;
  for (int number : read("has_memory")) {
    MemoryNode node{number, {}};
    for (int core : read("node" + std::to_string(number) + "/cpulist"))
      if (CPU_ISSET(core, &allowed))
        node.cores.push_back(core);
    if (!node.cores.empty())
      nodes.push_back(std::move(node));
  }
  return nodes;
}

NodePlan planNodes(std::vector<MemoryNode> nodes, int ranks, int threads) {
  NodePlan plan;
  plan.ranksOfPool = ranks;
  int count = static_cast<int>(nodes.size());
  if (count <= 1)
    return plan;
  size_t cores = nodes.front().cores.size();
  bool isEven =
      std::all_of(nodes.begin(), nodes.end(), [&](const MemoryNode &node) {
        return node.cores.size() == cores;
      });
  if (isEven && ranks % count == 0 && threads % count == 0) {
    plan.pools = count;
    plan.ranksOfPool = ranks / count;
    plan.bound = std::move(nodes);
  } else if (static_cast<size_t>(threads) > cores) {
    plan.interleaved = std::move(nodes);
  }
  return plan;
}

OnNode::OnNode(const MemoryNode *node) : isBound(node), before(allowedCores()) {
  if (!node)
    return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : node->cores)
    CPU_SET(core, &set);
  // A failure costs time only.
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

OnNode::~OnNode() {
  if (isBound)
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}

bool placeMemory(const NodePlan &plan, int rank, void *begin, int64_t bytes) {
  std::vector<MemoryNode> nodes = plan.interleaved;
  if (const MemoryNode *node = plan.nodeOf(rank))
    nodes = {*node};
  if (nodes.empty() || bytes <= 0)
    return true;
  constexpr size_t kBits = CHAR_BIT * sizeof(unsigned long);
  std::vector<unsigned long> mask(CPU_SETSIZE / kBits);
  for (const MemoryNode &node : nodes)
    mask[node.number / kBits] |= 1ul << node.number % kBits;
  int policy = plan.bound.empty() ? MPOL_INTERLEAVE : MPOL_PREFERRED;
  // The kernel takes one bit less than it is told.
  return syscall(SYS_mbind, begin, static_cast<unsigned long>(bytes), policy,
                 mask.data(), mask.size() * kBits + 1, 0) == 0;
}

} // namespace rota
