// SPDX-License-Identifier: Apache-2.0
//
// The launcher of a process is found by its environment variables.
#include "runtime/train/rank/Launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

using namespace rota;

namespace {

/// findLaunch() with these variables of a launcher alone.
class Launched : public testing::Test {
protected:
  ProcessLaunch under(const std::map<std::string, std::string> &variables) {
    for (const char *name : names)
      unsetenv(name);
    for (const auto &[name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
    return findLaunch();
  }
  void TearDown() override {
    for (const char *name : names)
      unsetenv(name);
  }

private:
  static constexpr const char *names[] = {"RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_RANK",
                                          "LOCAL_WORLD_SIZE",
                                          "OMPI_COMM_WORLD_SIZE",
                                          "OMPI_COMM_WORLD_RANK",
                                          "OMPI_COMM_WORLD_LOCAL_SIZE",
                                          "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "SLURM_STEP_NUM_TASKS",
                                          "SLURM_PROCID",
                                          "SLURM_LOCALID",
                                          "SLURM_STEP_TASKS_PER_NODE"};
};

} // namespace

TEST_F(Launched, Alone) {
  ProcessLaunch launch = under({});
  EXPECT_EQ(launch.by, "");
  EXPECT_EQ(launch.processes, 1);
  EXPECT_EQ(launch.neighbours, 1);
}

TEST_F(Launched, ByMpirun) {
  ProcessLaunch launch = under({{"OMPI_COMM_WORLD_SIZE", "8"},
                                {"OMPI_COMM_WORLD_RANK", "5"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  EXPECT_EQ(launch.by, "mpirun");
  EXPECT_EQ(launch.processes, 8);
  EXPECT_EQ(launch.process, 5);
  EXPECT_EQ(launch.neighbours, 4);
  EXPECT_EQ(launch.localProcess, 1);
}

// Also where srun started one torchrun on each machine.
TEST_F(Launched, ByTorchrun) {
  std::map<std::string, std::string> variables = {
      {"RANK", "13"},         {"WORLD_SIZE", "16"},
      {"LOCAL_RANK", "5"},    {"LOCAL_WORLD_SIZE", "8"},
      {"SLURM_PROCID", "1"},  {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_LOCALID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};
  ProcessLaunch launch = under(variables);
  EXPECT_EQ(launch.by, "torchrun");
  EXPECT_EQ(launch.processes, 16);
  EXPECT_EQ(launch.process, 13);
  EXPECT_EQ(launch.neighbours, 8);
  EXPECT_EQ(launch.localProcess, 5);
  variables.erase("LOCAL_RANK"); // a script's own
  EXPECT_EQ(under(variables).by, "srun");
}

TEST_F(Launched, BySrun) {
  ProcessLaunch launch = under({{"SLURM_STEP_NUM_TASKS", "7"},
                                {"SLURM_PROCID", "6"},
                                {"SLURM_LOCALID", "2"},
                                {"SLURM_STEP_TASKS_PER_NODE", "4,3"}});
  EXPECT_EQ(launch.by, "srun");
  EXPECT_EQ(launch.process, 6);
  EXPECT_EQ(launch.neighbours, 4);
  EXPECT_EQ(launch.localProcess, 2);
  EXPECT_EQ(under({{"SLURM_STEP_NUM_TASKS", "8"},
                   {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}})
                .neighbours,
            4);
}

TEST_F(Launched, ProcessesShareTheCores) {
  auto share = [](int neighbours, int available, int all) {
    return shareOfCores({"", neighbours, 0, neighbours}, available, all);
  };
  EXPECT_EQ(share(1, 16, 16), 16);
  EXPECT_EQ(share(4, 16, 16), 4);
  EXPECT_EQ(share(8, 8, 16), 2);   // bound to half of the machine each
  EXPECT_EQ(share(4, 1, 16), 1);   // bound to a core each
  EXPECT_EQ(share(32, 16, 16), 1); // more than cores
}
