// SPDX-License-Identifier: Apache-2.0
//
// The work of a transfer between ranks that share a GPU: copies, and sums that
// read the terms directly from the memory of all ranks.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_TRANSFERWORK_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_TRANSFERWORK_H

#include "runtime/collective/Blocks.h"
#include "runtime/collective/Exchange.h"
#include "runtime/collective/gpu/TermTables.h"
#include "runtime/device/cuda/CudaDevice.h"

namespace rota {

/// The buffers of one member of a transfer.
struct MemberBuffers {
  const void *source = nullptr;
  void *destination = nullptr;
};

class TransferWork {
public:
  /// For transfers of at most that many ranks.
  TransferWork(cuda::CudaDevice &device, int ranks);
  ~TransferWork();

  /// Asks `stream` for the whole transfer, of all members. Their buffers hold
  /// what they should when the stream gets there. Throws RunError.
  void enqueue(const Exchange &exchange,
               const std::vector<MemberBuffers> &members,
               cuda::StreamHandle stream);

private:
  void collect(const Exchange &exchange,
               const std::vector<MemberBuffers> &members, int to,
               cuda::StreamHandle stream);
  void sum(const Exchange &exchange, const std::vector<MemberBuffers> &members,
           int to, cuda::StreamHandle stream);
  void copy(const TransferBlock &block, int64_t elementBytes,
            const void *source, void *destination, cuda::StreamHandle stream);
  void copyBytes(const void *source, void *destination, int64_t bytes,
                 cuda::StreamHandle stream);
  void clear(const TransferRows &rows, int64_t elementBytes, void *buffer,
             cuda::StreamHandle stream);

  cuda::CudaDevice &device;
  cuda::Gpu &gpu;
  TermTables tables;
  cuda::Address zero = 0; // an element that is zero
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_TRANSFERWORK_H
