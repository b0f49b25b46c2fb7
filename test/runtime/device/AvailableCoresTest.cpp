// SPDX-License-Identifier: Apache-2.0
//
// Limits of control groups, on folders that look like those of the kernel.
#include "runtime/device/AvailableCores.h"
#include "runtime/device/AvailableMemory.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <climits>

using namespace rota;

namespace {

/// A root folder with the files of a process and of its groups.
class ControlGroups : public testing::Test {
protected:
  void write(const std::string &name, const std::string &text) {
    std::filesystem::create_directories(
        std::filesystem::path(folder.path(name)).parent_path());
    folder.write(name, text);
  }
  int cores() const { return controlGroupCores(folder.path("")); }
  int64_t memory() const { return controlGroupMemory(folder.path("")); }

  test::TemporaryFolder folder;
};

constexpr const char *kVersion2 =
    "29 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

} // namespace

TEST_F(ControlGroups, AQuotaIsRoundedUpToWholeCores) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(cores(), INT_MAX);
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), INT_MAX);
  write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(cores(), 3);
  write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(cores(), 4);
  write("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(cores(), 1);
}

TEST_F(ControlGroups, TheSmallestLimitOfTheGroupsAboveCounts) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/cpu.max", "9900000 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "600000 100000\n");
  write("sys/fs/cgroup/job/step/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/job/step/cpuset.cpus.effective", "0-15\n");
  EXPECT_EQ(cores(), 6);
  write("sys/fs/cgroup/job/step/cpuset.cpus.effective", "2-3,8,10-11\n");
  EXPECT_EQ(cores(), 5);
}

TEST_F(ControlGroups, VersionOneHasAMountForEachController) {
  write(
      "proc/self/mountinfo",
      "30 25 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
      "31 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
      "rw,cpu,cpuacct\n"
      "32 25 0:29 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup "
      "rw,cpuset\n");
  write("proc/self/cgroup", "4:cpuset:/set\n3:cpu,cpuacct:/user/job\n");
  std::string group = "sys/fs/cgroup/cpu,cpuacct/user/job/";
  write(group + "cpu.cfs_quota_us", "-1\n");
  write(group + "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), INT_MAX);
  write(group + "cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cores(), 2);
  write("sys/fs/cgroup/cpuset/set/cpuset.cpus", "7\n");
  EXPECT_EQ(cores(), 1);
}

TEST_F(ControlGroups, AContainerSeesItsGroupAtTheTopOfTheMount) {
  // Without a namespace of its own it reads the name that the host uses.
  write("proc/self/mountinfo",
        "31 25 0:28 /docker/1f /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  for (const char *path : {"/docker/1f", "/", "/docker/1", "/../other"}) {
    write("proc/self/cgroup", std::string("3:cpu:") + path + "\n");
    EXPECT_EQ(cores(), 3) << path;
  }
}

TEST_F(ControlGroups, LimitMemory) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/job/step\n");
  EXPECT_EQ(memory(), INT64_MAX);
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  EXPECT_EQ(memory(), INT64_MAX);
  write("sys/fs/cgroup/job/memory.max", "268435456\n");
  EXPECT_EQ(memory(), 268435456);
  write("proc/self/mountinfo",
        "31 25 0:28 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup "
        "rw,memory\n");
  write("proc/self/cgroup", "4:memory:/docker/1f\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "62914560\n");
  EXPECT_EQ(memory(), 62914560);
  EXPECT_LE(availableMemory(), controlGroupMemory());
}

TEST_F(ControlGroups, NothingIsLimitedWithoutThem) {
  EXPECT_EQ(cores(), INT_MAX);
  write("proc/self/cgroup", "broken\n0::/\n");
  write("proc/self/mountinfo", "broken\n");
  EXPECT_EQ(cores(), INT_MAX);
}

TEST(CoreList, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(parseCoreList("0-2,5,7-8\n"), (std::vector<int>{0, 1, 2, 5, 7, 8}));
  EXPECT_EQ(parseCoreList("3"), (std::vector<int>{3}));
  EXPECT_TRUE(parseCoreList("").empty());
  EXPECT_TRUE(parseCoreList("none").empty());
}

TEST(AvailableCores, AreNoMoreThanTheMachineHas) {
  EXPECT_GE(availableCores(), 1);
  EXPECT_LE(availableCores(), machineCores());
}
