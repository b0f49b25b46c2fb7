// SPDX-License-Identifier: Apache-2.0
//
// Ranks on fake GPUs, connected by a fake NCCL, each in a thread of a test.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_NCCLMACHINE_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_NCCLMACHINE_H

#include "runtime/collective/nccl/NcclCommunicator.h"
#include "test/runtime/collective/CommunicatorChecks.h"
#include "test/runtime/collective/ForwardingCommunicator.h"
#include "test/runtime/collective/RandomCollective.h"
#include "test/runtime/collective/nccl/FakeGpu.h"
#include "test/runtime/collective/nccl/FakeNccl.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <thread>

namespace rota::test {

/// A rank of a test, in a thread of its own.
struct TestRank {
  cuda::CudaDevice &device;
  NcclCommunicator &communicator;
  void synchronize() {
    device.gpu().check(
        device.gpu().api().synchronizeStream(device.computeStream()),
        "synchronization");
  }
};

class Machine {
public:
  Machine(int ranks, NcclPlan plan, int64_t workspaceBytes = 1 << 20,
          NcclCommunicator::Options options = {})
      : ranks(ranks), plan(std::move(plan)), workspaceBytes(workspaceBytes),
        options(options) {}

  /// `failures`: the messages of the exceptions that leave the ranks, of each;
  /// without them there are none.
  void run(const std::function<void(TestRank &)> &body,
           const std::vector<std::string> &failures = {}) const {
    NcclId id = fakeId();
    setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0); // as prepareForNccl
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        EXPECT_EQ(failureOf([&] { runRank(rank, id, body); }),
                  failures.empty() ? "nothing was thrown" : failures[rank]);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  void runRank(int rank, const NcclId &id,
               const std::function<void(TestRank &)> &body) const {
    auto device = fakeDevice(rank);
    std::vector<char> workspace(workspaceBytes);
    NcclCommunicator communicator(*device, fakeNccl(), rank, ranks, id, plan,
                                  workspace.data(), workspaceBytes, options);
    TestRank test = {*device, communicator};
    body(test);
  }

  const int ranks;
  const NcclPlan plan;
  const int64_t workspaceBytes;
  const NcclCommunicator::Options options;
};

/// Messages of both directions between all ranks, and a group of all in each
/// stream of collectives.
inline NcclPlan planOfAll(int ranks) {
  NcclPlan plan;
  std::vector<int> everyone(ranks);
  std::iota(everyone.begin(), everyone.end(), 0);
  for (Stream stream :
       {Stream::Task, Stream::Weights, Stream::Gradients, Stream::Step})
    plan.add({stream, false, everyone});
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      if (from != to)
        for (Stream stream : {Stream::Forward, Stream::Backward})
          plan.add({stream, true, {from, to}});
  return plan;
}

/// The inputs of exchangeRandomly.
inline NcclPlan planOf(int ranks, uint64_t seed, int count, int64_t elements) {
  NcclPlan plan = planOfAll(ranks);
  std::vector<MeshAxis> mesh = makeMesh(ranks);
  for (int i = 0; i < count; ++i) {
    RandomCollective next(seed * 10000 + i, mesh, elements);
    for (int rank = 0; rank < ranks; ++rank)
      plan.add({next.stream, false, next.group(rank).ranks});
  }
  return plan;
}

/// A communicator whose `wait` waits for the results.
class Finished : public ForwardingCommunicator {
public:
  explicit Finished(TestRank &test)
      : ForwardingCommunicator(test.communicator), test(test) {}
  TransferTime wait(Request request) override {
    TransferTime time = inner.wait(request);
    test.synchronize();
    return time;
  }

private:
  TestRank &test;
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_NCCLMACHINE_H
