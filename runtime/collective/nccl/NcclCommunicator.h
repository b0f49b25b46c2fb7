// SPDX-License-Identifier: Apache-2.0
//
// Communication between ranks that are processes with a GPU each, over NCCL,
// for tensors in GPU memory. The order of transfers is that of CUDA streams:
// no function but `wait` with timing waits for the GPU.
//
// Each route (NcclPlan.h) has a communicator of NCCL and a CUDA stream of its
// own, and so the order that Communicator.h promises, and no other.
// Deadlocks: the kernels of a route wait on the GPU for those of other ranks.
// That ends, because
// - a timeline that Verify.h accepts ends where each message and collective
//   waits for its own counterparts and the compute stream's work before it
//   alone; the GPU adds no other order as long as all routes of a rank run side
//   by side. For that, their kernels have fewer blocks together than the GPU
//   has multiprocessors, and CUDA has a queue for each stream (Connect.h);
// - all ranks make and use every route once when they start, in one order, so
//   that no later call waits on the host for other ranks to connect;
// - nothing allocates GPU memory or loads code while transfers run, which could
//   wait for all kernels.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLCOMMUNICATOR_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLCOMMUNICATOR_H

#include "runtime/collective/nccl/GpuExchange.h"
#include "runtime/collective/nccl/NcclPlan.h"
#include "runtime/collective/nccl/NcclWatch.h"

#include <map>
#include <unordered_map>

namespace rota {

class NcclCommunicator : public Communicator, Recorder {
public:
  struct Options {
    /// Seconds in which some transfer has to end while any is under way.
    double patience = 600.0;
    /// `wait` waits on the host and returns times; else they are empty.
    bool timing = false;
    /// Steps can be recorded.
    bool records = true;
  };

  /// Connects with all other ranks; returns when all have. The workspace is
  /// device memory, of the same size on all ranks; all groups share it. `plan`
  /// is the same on all ranks. Throws RunError; InputError for two ranks on one
  /// GPU and for too small a workspace.
  NcclCommunicator(cuda::CudaDevice &device, const NcclApi &nccl, int rank,
                   int size, const NcclId &id, const NcclPlan &plan,
                   void *workspace, int64_t bytes, Options options);
  /// Waits for the GPU and ends the communicators, or aborts them when an
  /// exception propagates.
  ~NcclCommunicator() override;

  int rank() const override { return ownRank; }
  int size() const override { return ranks; }
  /// A group of several ranks is one of the plan.
  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override;
  /// Messages without a route in the plan go over a communicator of all ranks,
  /// one after the other: all ranks start them in one order, and do not start
  /// two that wait for each other.
  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override;
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override;
  /// Between any places of device memory and memory of makeHostArena.
  Request copy(const void *source, void *destination, int64_t bytes) override;
  /// The compute stream does what it is asked for from now on after the
  /// transfer. Throws RunError when the run has failed.
  TransferTime wait(Request request) override;
  bool isDone(Request request) override;
  double now() const override;
  /// Each rank records a graph of its own, with NCCL's operations in it. NCCL
  /// wants all ranks of an operation to record it, or none, and all of them to
  /// replay what they recorded together. Null with timing.
  Recorder *recorder() override {
    return options.timing || !options.records ? nullptr : this;
  }
  void setPosition(const std::string &position) override {
    watch.setPosition(position);
  }
  void fail(const std::string &message) override { watch.fail(message); }

  /// Waits on the host until the request is complete, and forgets it.
  void finish(Request request);

private:
  struct Lane {
    NcclHandle handle = nullptr;
    cuda::OwnedStream stream;
    std::optional<GpuExchange> exchange;
    explicit Lane(cuda::Gpu &gpu) : stream(gpu) {}
  };

  void connectAll(const NcclPlan &plan, const NcclId &id,
                  GpuExchange::Workspace workspace, int64_t lanes);
  NcclHandle connectWorld(const NcclId &id, NcclConfig config);
  void connectRoute(const NcclRoute &route, NcclHandle handle,
                    GpuExchange::Workspace &workspace);
  void useOnce(Lane &lane, const NcclRoute &route, char *room, int64_t bytes);
  Lane &laneOf(const NcclRoute &route);
  Request message(Stream stream, int from, int to, void *data, int64_t bytes);
  Request ask(Lane &lane, const std::string &what,
              const std::function<void()> &work);
  class Replay;
  void begin() override;
  std::unique_ptr<Recording>
  end(const std::function<std::string()> &reached) override;
  void await(const NcclTransfer &transfer);
  TransferTime timeOf(const std::shared_ptr<NcclTransfer> &transfer);

  cuda::CudaDevice &device;
  cuda::Gpu &gpu;
  const NcclApi &nccl;
  const int ownRank, ranks;
  const Options options;
  NcclWatch watch;
  cuda::OwnedEvent computeMark;
  Lane solo, world; // copies and groups of one rank; messages without a route
  std::map<NcclRoute, std::unique_ptr<Lane>> lanes;
  std::unordered_map<Request, std::shared_ptr<NcclTransfer>> requests;
  Request lastRequest = 0;
  bool records = false; // no transfer is watched that is only recorded
  // The end of this transfer is at `originTime` of now().
  std::shared_ptr<NcclTransfer> origin;
  double originTime = 0.0;
  double startSeconds = 0.0; // time of now(), on the host's clock
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLCOMMUNICATOR_H
