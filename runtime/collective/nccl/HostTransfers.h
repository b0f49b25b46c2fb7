// SPDX-License-Identifier: Apache-2.0
//
// Transfers between buffers in host memory over a communicator of tensors in
// GPU memory: the numbers and texts that ranks report.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_HOSTTRANSFERS_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_HOSTTRANSFERS_H

#include "runtime/collective/nccl/NcclCommunicator.h"

#include <map>

namespace rota {

class HostTransfers : public Communicator {
public:
  /// Source and destination of each transfer lie in `staging`, device memory of
  /// that many bytes, while it runs. A transfer for which there is no room
  /// first waits for all before it; one that never fits throws RunError.
  HostTransfers(NcclCommunicator &tensors, cuda::CudaDevice &device,
                void *staging, int64_t bytes);

  int rank() const override { return tensors.rank(); }
  int size() const override { return tensors.size(); }
  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override;
  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override;
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override;
  Request copy(const void *source, void *destination, int64_t bytes) override;
  /// Waits on the host. The time is empty.
  TransferTime wait(Request request) override;
  bool isDone(Request request) override;
  double now() const override { return tensors.now(); }
  void setPosition(const std::string &position) override {
    tensors.setPosition(position);
  }
  void fail(const std::string &message) override { tensors.fail(message); }

private:
  /// A transfer under way, and its result where the rank has one.
  struct Open {
    Request request = 0;
    const void *staged = nullptr;
    void *host = nullptr;
    int64_t bytes = 0;
  };
  std::pair<char *, char *> reserve(int64_t first, int64_t second);
  void complete(const Open &open);
  Request add(Open open);

  NcclCommunicator &tensors;
  cuda::CudaDevice &device;
  char *const staging;
  const int64_t capacity;
  int64_t used = 0;
  std::map<Request, Open> opens; // in the order of their starts
  Request lastRequest = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_HOSTTRANSFERS_H
