// SPDX-License-Identifier: Apache-2.0
//
// A thread that watches a rank's communicators of NCCL. The rank may wait in
// the driver, for a kernel that waits for another rank. Where NCCL reports an
// error, or nothing ends for too long, the thread aborts the communicators, so
// that their kernels end and the rank goes on to throw.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLWATCH_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLWATCH_H

#include "runtime/collective/nccl/NcclApi.h"
#include "runtime/device/cuda/Gpu.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rota {

/// A transfer that the GPU was asked for.
struct NcclTransfer {
  NcclTransfer(cuda::Gpu &gpu, bool timing) : end(gpu, timing) {
    if (timing)
      begin.emplace(gpu, timing);
  }
  std::optional<cuda::OwnedEvent> begin;
  cuda::OwnedEvent end;
  std::string what;
};

class NcclWatch {
public:
  /// `patience`: seconds without the end of a transfer while one is under way.
  NcclWatch(const NcclApi &nccl, const cuda::Gpu &gpu, int rank,
            double patience);
  ~NcclWatch();

  /// Held by the rank's thread while it calls NCCL or changes what is below;
  /// it does neither when the run has failed.
  std::timed_mutex calls;
  /// Guarded by `calls`.
  std::vector<NcclHandle> handles;
  std::deque<std::shared_ptr<NcclTransfer>> underWay;

  bool hasFailed() const { return failed; }
  /// Throws RunError with the first failure, if there is one.
  void rethrow();
  /// Aborts all communicators. Only the first failure counts. Callable from any
  /// thread that does not hold `calls`.
  void fail(const std::string &message);
  void setPosition(const std::string &text);
  std::string getPosition();
  /// "rank 3: stage 1, chunk 2, microbatch 0, F".
  std::string where();
  /// The rank has connected: from now on a failure only ends transfers. Before,
  /// it ends the process, since no call ends NCCL's waiting for other ranks.
  void connected() { isConnected = true; }

private:
  void run();
  void look();
  void retire();
  void checkErrors();
  void checkProgress();

  const NcclApi &nccl;
  const cuda::Gpu &gpu;
  const int rank;
  const double patience;
  std::atomic<bool> failed{false}, isConnected{false};
  double lastEnd; // of a transfer; of the watching thread

  std::mutex mutex; // guards the rest
  std::condition_variable wake;
  std::string position = "start", failure;
  bool stopping = false;
  std::thread thread;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLWATCH_H
