// SPDX-License-Identifier: Apache-2.0
//
// A CUDA driver without a GPU: streams, events, graphs and kernels of one
// emulated GPU (Simt.h), on this machine's processor.
//
// Work runs in an order that only streams and events fix: the seed draws the
// rest, so that a missing wait is likely to be seen. A call that NVIDIA's
// driver forbids has its error here too. Stricter than NVIDIA's: only
// non-blocking streams, only relaxed capture, no graphs in graphs, and an
// event of an ended capture is an error until it is recorded again.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_EMULATEDDRIVER_H
#define ROTA_RUNTIME_DEVICE_SIMT_EMULATEDDRIVER_H

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/simt/Simt.h"

#include <functional>

namespace rota::simt {

struct EmulatedDriverOptions {
  int threads = 1; // threads for blocks of a kernel, at least 1
  uint64_t seed = 0;
  int64_t memoryBytes = int64_t(64) << 30;
};

/// For the contexts that are retained later. Throws RunError while one is
/// retained.
void setEmulatedDriverOptions(const EmulatedDriverOptions &options);

/// One GPU, "emulated GPU" of the capability 0.0. Code is of the form
/// ROTA_GPU_HOST. Memory is 0xFF at first where code has checks. The last
/// release of the context ends all that belongs to it; the next GPU is a new
/// one.
const cuda::DriverApi &emulatedDriver();

/// Work of the host in a stream.
struct HostWork {
  std::string what;            // "product of 2 x 4 x 3"
  std::vector<MemoryUse> uses; // memory of the driver
  /// Must not call the driver. If it throws, the GPU fails with what() as the
  /// report.
  std::function<void()> run;
  /// Not null: the stream waits with the work until this returns true. The
  /// driver asks again and again, from the time on when all before is done.
  /// Must not call the driver. Such work cannot be captured.
  std::function<bool()> isReady = nullptr;
};

/// Asks the stream of the current context for the work, also in a capture.
/// Throws RunError when the stream does not take it.
void enqueueHost(cuda::StreamHandle stream, HostWork work);

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_EMULATEDDRIVER_H
