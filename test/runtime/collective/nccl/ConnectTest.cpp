// SPDX-License-Identifier: Apache-2.0
//
// The rendezvous address of ranks is found by environment variables.
#include "runtime/collective/nccl/Connect.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/collective/CommunicatorChecks.h"
#include "test/runtime/collective/nccl/FakeGpu.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

using namespace rota;
using namespace rota::test;

namespace {

/// Tests with these variables alone.
class Environment : public testing::Test {
protected:
  void have(const std::map<std::string, std::string> &variables) {
    TearDown();
    for (const auto &[name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override {
    for (const char *name : {"NCCL_COMM_ID", "MASTER_ADDR", "MASTER_PORT",
                             "CUDA_DEVICE_MAX_CONNECTIONS",
                             "NCCL_GRAPH_REGISTER", "NCCL_RUNTIME_CONNECT"})
      unsetenv(name);
  }
};

} // namespace

TEST_F(Environment, FindsTheRendezvous) {
  have({});
  EXPECT_EQ(rendezvousAddress(), "");
  // Torchrun listens at the port itself.
  have({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(rendezvousAddress(), "node7:29501");
  have({{"MASTER_ADDR", "fd00::7"}, {"MASTER_PORT", "65535"}});
  EXPECT_EQ(rendezvousAddress(), "[fd00::7]:65534");
  have({{"MASTER_ADDR", "node7"},
        {"MASTER_PORT", "29500"},
        {"NCCL_COMM_ID", "node8:1234"}});
  EXPECT_EQ(rendezvousAddress(), "node8:1234");
}

TEST_F(Environment, HalfAnAddressIsRefused) {
  for (const char *port : {"0", "65536", "port"}) {
    have({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", port}});
    EXPECT_EQ(failureOf(rendezvousAddress),
              "expected MASTER_ADDR and MASTER_PORT in the environment, got "
              "'node7' and '" +
                  std::string(port) + "'");
  }
}

TEST_F(Environment, EachStreamNeedsAQueue) {
  auto device = fakeDevice(0);
  Program program = makeLine({.stages = 2, .data = 2});
  auto connect = [&] {
    makeNcclCommunicator(*device, program, {"srun", 0, 4}, {});
  };
  have({});
  EXPECT_EQ(failureOf(connect),
            "expected CUDA_DEVICE_MAX_CONNECTIONS of at least 9, for the "
            "streams of a rank, got 8");
  prepareForNccl();
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  EXPECT_STREQ(std::getenv("NCCL_RUNTIME_CONNECT"), "0");
  EXPECT_STREQ(std::getenv("NCCL_GRAPH_REGISTER"), "0");
  // Without NCCL, or without an address.
  std::string next = failureOf(connect);
  EXPECT_TRUE(next.starts_with("cannot load NCCL") ||
              next.starts_with("--ranks nccl under srun: expected "
                               "NCCL_COMM_ID=HOST:PORT in the environment"))
      << next;
}
