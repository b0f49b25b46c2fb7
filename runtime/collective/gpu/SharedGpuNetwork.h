// SPDX-License-Identifier: Apache-2.0
//
// Communicators between threads of one process whose ranks share a GPU, for
// tensors in its memory. Threads only ask for work: the last member to arrive
// at a transfer enqueues it for all members, after what each of them had asked
// its compute stream for.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_SHAREDGPUNETWORK_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_SHAREDGPUNETWORK_H

#include "runtime/collective/Communicator.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <memory>

namespace rota {

class SharedGpuNetwork {
public:
  /// devices[r] is that of rank r; all have the same GPU. The network must
  /// outlive the use of its communicators, and the devices must outlive it.
  /// With `timing`, requests know their times, and `wait` also waits until the
  /// GPU is there; without it their times are empty. Throws RunError.
  SharedGpuNetwork(std::vector<cuda::CudaDevice *> devices, bool timing);
  ~SharedGpuNetwork();

  /// The communicator of `rank`, for the one thread that is that rank. Its
  /// tensors are in device memory; one side of a copy may be pinned host
  /// memory.
  ///
  /// Work that the rank asked its compute stream for before it starts a
  /// transfer is done before the transfer reads the source or writes the
  /// destination. `wait` returns as soon as all members have arrived; what the
  /// compute stream is asked for later runs after the transfer. `isDone` is
  /// true when the GPU has done it. Without `timing` the work of all ranks is
  /// recorded as one graph, which the last rank to ask for a replay launches.
  /// After a failure every function but `now`, `fail` and `setPosition` throws,
  /// and by then the GPU is idle.
  Communicator &at(int rank);

private:
  class Switch;
  class End;
  std::unique_ptr<Switch> network;
  std::vector<std::unique_ptr<Communicator>> ends;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_SHAREDGPUNETWORK_H
