// SPDX-License-Identifier: Apache-2.0
//
// What would hang under NCCL: connections in the middle of a run, and releases
// of memory while transfers are under way.
#include "test/runtime/EnvironmentVariable.h"
#include "test/runtime/collective/nccl/NcclMachine.h"

#include <atomic>
#include <chrono>
#include <latch>

using namespace rota;
using namespace rota::test;

namespace {

/// Connections that are made after the start of three ranks.
int lateConnections() {
  int connections = 0;
  Machine machine{3, planOf(3, 5, 30, 100)};
  std::latch ready(3), started(3);
  machine.run([&](TestRank &test) {
    ready.arrive_and_wait();
    if (test.communicator.rank() == 0)
      connections = fakeConnections();
    started.arrive_and_wait();
    Finished communicator(test);
    exchangeRandomly(communicator, 5, 30, 100);
  });
  EXPECT_GT(connections, 0);
  return fakeConnections() - connections;
}

// A connection that is made later would wait on the host for the other rank.
TEST(NcclConnections, AllConnectionsAreMadeAtTheStart) {
  EnvironmentVariable variable("NCCL_RUNTIME_CONNECT", "0");
  EXPECT_EQ(lateConnections(), 0);
}

// NCCL's default: gathers of other sizes than the first one connect in the
// middle of a run.
TEST(NcclConnections, GathersConnectLateByDefault) {
  EnvironmentVariable variable("NCCL_RUNTIME_CONNECT", "1");
  EXPECT_GT(lateConnections(), 0);
}

// Rank 1 sends only after rank 0 has released memory, which waits for the
// receive: on a real GPU both would hang.
TEST(NcclConnections, AReleaseWaitsForTransfers) {
  std::atomic<bool> hasReleased = false;
  Machine{2, planOfAll(2)}.run([&](TestRank &test) {
    NcclCommunicator &communicator = test.communicator;
    const cuda::DriverApi &api = test.device.gpu().api();
    int value = 3, received = 0;
    if (communicator.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_FALSE(hasReleased);
      communicator.finish(communicator.send(Stream::Forward, 0, &value, 4));
      return;
    }
    cuda::Address address = 0;
    EXPECT_EQ(api.allocate(&address, 4), cuda::kSuccess);
    Request request = communicator.receive(Stream::Forward, 1, &received, 4);
    EXPECT_EQ(api.free(address), cuda::kSuccess);
    hasReleased = true;
    communicator.finish(request);
    test.synchronize();
    EXPECT_EQ(received, 3);
  });
}

} // namespace
