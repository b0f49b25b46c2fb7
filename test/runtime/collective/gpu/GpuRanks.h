// SPDX-License-Identifier: Apache-2.0
//
// Ranks of a test that share the emulated GPU, each a thread with a device.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_GPU_GPURANKS_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_GPU_GPURANKS_H

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "test/runtime/collective/ForwardingCommunicator.h"

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace rota::test {

/// The emulated driver, of which each launch fails.
const cuda::DriverApi &driverWithoutLaunches();

/// Devices of ranks that share the emulated GPU. The order of its work follows
/// from the seed.
class GpuRanks {
public:
  GpuRanks(int ranks, uint64_t seed,
           const cuda::DriverApi &driver = simt::emulatedDriver());

  cuda::CudaDevice &device(int rank) { return *devices[rank]; }
  std::vector<cuda::CudaDevice *> all();
  /// Calls body(rank) on a thread for each rank.
  void run(const std::function<void(int)> &body);

private:
  std::shared_ptr<cuda::Gpu> gpu;
  std::vector<std::unique_ptr<cuda::CudaDevice>> devices;
};

/// A buffer in the memory of the rank's GPU. Reads and writes take place in the
/// order of its compute stream; only `read` waits.
class GpuBuffer {
public:
  GpuBuffer(cuda::CudaDevice &device, int64_t bytes);
  ~GpuBuffer();
  GpuBuffer(const GpuBuffer &) = delete;
  GpuBuffer &operator=(const GpuBuffer &) = delete;

  void *place() const { return reinterpret_cast<void *>(address); }
  int64_t bytes() const { return size; }
  /// `host` must live until somebody waits for the stream.
  void write(const void *host);
  void read(void *host);
  void fill(unsigned char value);

private:
  cuda::CudaDevice &device;
  cuda::Address address = 0;
  int64_t size;
};

/// A communicator for tensors in host memory through one for tensors in GPU
/// memory: brings them there before a transfer and back after it. Then it
/// spoils the buffers on the GPU, which no transfer may read or write any more.
class ThroughGpu : public ForwardingCommunicator {
public:
  ThroughGpu(Communicator &inner, cuda::CudaDevice &device)
      : ForwardingCommunicator(inner), device(device) {}

  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override;
  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override;
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override;
  Request copy(const void *source, void *destination, int64_t bytes) override;
  TransferTime wait(Request request) override;

private:
  using Buffer = std::unique_ptr<GpuBuffer>;
  struct Moved {
    Buffer source, destination; // no source: it is the destination
    void *host = nullptr;       // host's copy of the destination
  };
  Buffer moved(const void *host, int64_t bytes);
  Request add(Request request, Moved moved);

  cuda::CudaDevice &device;
  std::unordered_map<Request, Moved> open;
  std::vector<Moved> closed; // their memory is not used again
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_GPU_GPURANKS_H
