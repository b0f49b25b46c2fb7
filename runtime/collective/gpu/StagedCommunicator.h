// SPDX-License-Identifier: Apache-2.0
//
// Communication of tensors in GPU memory through a communicator for host
// memory: each transfer runs between pinned buffers of the ranks.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_STAGEDCOMMUNICATOR_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_STAGEDCOMMUNICATOR_H

#include "runtime/collective/gpu/EventPool.h"
#include "runtime/collective/gpu/PinnedBuffers.h"
#include "runtime/collective/gpu/TransferWork.h"

#include <unordered_map>

namespace rota {

/// One rank's end, on its thread. `start` and `send` wait until the source is
/// in host memory. `wait` waits for the transfer between the hosts; what the
/// rank's compute stream is asked for later runs after the way back. Results
/// have the bits of the host's communicator. Copies, and collectives of one
/// rank, stay on the GPU; their times are empty.
class StagedCommunicator : public Communicator {
public:
  /// `host` and `device` must outlive this communicator. Throws RunError.
  StagedCommunicator(Communicator &host, cuda::CudaDevice &device);
  ~StagedCommunicator() override;

  int rank() const override { return host.rank(); }
  int size() const override { return host.size(); }
  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override;
  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override;
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override;
  Request copy(const void *source, void *destination, int64_t bytes) override;
  TransferTime wait(Request request) override;
  bool isDone(Request request) override;
  double now() const override { return host.now(); }
  void setPosition(const std::string &text) override;
  void fail(const std::string &message) override;

  /// Bytes of the pinned buffers.
  int64_t pinnedBytes() const { return buffers.bytes(); }

private:
  /// A host buffer that holds a destination in device memory. Transfers that
  /// add to one destination one after the other share it.
  struct Result {
    std::shared_ptr<PinnedBuffers::Buffer> buffer;
    void *place = nullptr;
    int64_t bytes = 0;
    Request last = 0; // the transfer that leaves the final value
  };
  struct Open {
    Request inHost = 0;
    EventPool::Event onGpu; // end of work that stays on the GPU
    std::shared_ptr<PinnedBuffers::Buffer> source;
    std::shared_ptr<Result> result;
  };

  template <typename Body> auto attempt(Body &&body);
  Request startAlone(const Exchange &exchange, MemberBuffers places);
  Open openCollective(const Collective &collective, const RankGroup &group,
                      const void *source, void *destination);
  std::shared_ptr<Result> resultAt(void *place, int64_t bytes,
                                   bool accumulates);
  void toHost(const void *source, const PinnedBuffers::Buffer &buffer,
              int64_t bytes);
  void finishToHost();
  void toDevice(const Result &result);
  Request add(Open open);
  void idle();

  Communicator &host;
  cuda::CudaDevice &device;
  cuda::Gpu &gpu;
  const cuda::DriverApi &driver;
  cuda::OwnedStream aside; // stream for work that stays on the GPU
  EventPool events;
  TransferWork work;
  PinnedBuffers buffers;
  std::unordered_map<Request, Open> requests;
  Request lastRequest = 0;
  std::string position = "start";
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_STAGEDCOMMUNICATOR_H
