// SPDX-License-Identifier: Apache-2.0
//
// Memory nodes, on folders that look like those of the kernel.
#include "runtime/device/MemoryNodes.h"
#include "runtime/device/AvailableCores.h"
#include "runtime/device/cpu/HostArena.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace rota;

namespace {

std::vector<MemoryNode> made(int nodes, int coresOfNode) {
  std::vector<MemoryNode> list;
  for (int i = 0; i < nodes; ++i) {
    list.push_back({i, {}});
    for (int core = 0; core < coresOfNode; ++core)
      list.back().cores.push_back(i * coresOfNode + core);
  }
  return list;
}

/// The numbers of the nodes of all ranks; -1: of none.
std::vector<int> nodesOfRanks(const NodePlan &plan, int ranks) {
  std::vector<int> numbers;
  for (int rank = 0; rank < ranks; ++rank) {
    const MemoryNode *node = plan.nodeOf(rank);
    numbers.push_back(node ? node->number : -1);
  }
  return numbers;
}

int firstAllowedCore() {
  cpu_set_t set = allowedCores();
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      return core;
  return -1;
}

} // namespace

TEST(MemoryNodes, HaveTheCoresThatTheThreadMayRunOn) {
  test::TemporaryFolder folder;
  auto write = [&](int node, const std::string &cores) {
    std::filesystem::create_directory(
        folder.path("node" + std::to_string(node)));
    folder.write("node" + std::to_string(node) + "/cpulist", cores);
  };
  EXPECT_TRUE(memoryNodes(folder.path("")).empty());
  std::string core = std::to_string(firstAllowedCore());
  folder.write("has_memory", "0,2-3\n");
  write(0, "1000-1001\n"); // cores of another process
  write(1, core + "\n");   // a node without memory
  write(2, core + "," + "1002\n");
  write(3, "\n"); // memory without cores
  std::vector<MemoryNode> nodes = memoryNodes(folder.path(""));
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].number, 2);
  EXPECT_EQ(nodes[0].cores, std::vector<int>{firstAllowedCore()});
}

TEST(NodePlan, RanksThatDivideEvenlyHaveAPoolOnEachNode) {
  NodePlan plan = planNodes(made(2, 32), 8, 64);
  EXPECT_EQ(plan.pools, 2);
  EXPECT_EQ(nodesOfRanks(plan, 8), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_TRUE(plan.interleaved.empty());
  plan = planNodes(made(4, 16), 4, 32); // half of the cores
  EXPECT_EQ(nodesOfRanks(plan, 4), (std::vector<int>{0, 1, 2, 3}));
}

TEST(NodePlan, OtherRanksShareAllCoresAndMemoryIsInterleaved) {
  for (int ranks : {1, 3, 5}) {
    NodePlan plan = planNodes(made(2, 32), ranks, 64);
    EXPECT_EQ(plan.pools, 1);
    EXPECT_EQ(nodesOfRanks(plan, ranks), std::vector<int>(ranks, -1));
    EXPECT_EQ(plan.interleaved.size(), 2u);
  }
  std::vector<MemoryNode> uneven = made(2, 32);
  uneven[1].cores.resize(8);
  EXPECT_EQ(planNodes(uneven, 2, 40).pools, 1);
  EXPECT_EQ(planNodes(uneven, 2, 40).interleaved.size(), 2u);
  EXPECT_EQ(planNodes(made(2, 32), 2, 63).pools, 1);
}

TEST(NodePlan, OneNodeOrFewCoresChangeNothing) {
  for (const NodePlan &plan :
       {planNodes({}, 4, 2), planNodes(made(1, 64), 4, 64),
        planNodes(made(1, 64), 1, 64), planNodes(made(2, 32), 1, 16)}) {
    EXPECT_EQ(plan.pools, 1);
    EXPECT_TRUE(plan.bound.empty());
    EXPECT_TRUE(plan.interleaved.empty());
  }
}

TEST(OnNode, BindsThreadsThatItStartsAndFreesItsOwn) {
  MemoryNode node{0, {firstAllowedCore()}};
  cpu_set_t before = allowedCores(), started;
  {
    OnNode scope(&node);
    std::thread([&] { started = allowedCores(); }).join();
  }
  EXPECT_EQ(CPU_COUNT(&started), 1);
  EXPECT_TRUE(CPU_ISSET(node.cores[0], &started));
  cpu_set_t after = allowedCores();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(PlaceMemory, SetsThePolicyOfAnArena) {
  std::vector<MemoryNode> nodes = memoryNodes();
  int mode = 0;
  auto policyOf = [&](void *place) {
    return syscall(SYS_get_mempolicy, &mode, nullptr, 0, place, MPOL_F_ADDR);
  };
  HostArena arena(int64_t(4) << 20);
  if (nodes.empty() || policyOf(arena.at(0)) != 0)
    GTEST_SKIP() << "the kernel knows no memory nodes";
  NodePlan plan;
  EXPECT_TRUE(placeMemory(plan, 0, arena.at(0), arena.bytes()));
  EXPECT_EQ(policyOf(arena.at(0)), 0);
  EXPECT_EQ(mode, MPOL_DEFAULT);
  plan.interleaved = {nodes[0]};
  EXPECT_TRUE(placeMemory(plan, 0, arena.at(0), arena.bytes()));
  EXPECT_EQ(policyOf(arena.at(arena.bytes() - 1)), 0);
  EXPECT_EQ(mode, MPOL_INTERLEAVE);
  plan.interleaved.clear();
  plan.bound = {nodes[0]};
  EXPECT_TRUE(placeMemory(plan, 0, arena.at(0), arena.bytes()));
  EXPECT_EQ(policyOf(arena.at(0)), 0);
  EXPECT_EQ(mode, MPOL_PREFERRED);
  std::fill_n(static_cast<char *>(arena.at(0)), arena.bytes(), 1);
  EXPECT_EQ(arena.highWater(), arena.bytes());
}
