// SPDX-License-Identifier: Apache-2.0
//
// A thread that watches a rank's communicators of NCCL. The rank may wait in
// the driver, for a kernel that waits for another rank. Where NCCL reports an
// error, or nothing ends for too long, the communicators are aborted, so that
// their kernels end and the rank goes on to throw.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLWATCH_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLWATCH_H

#include "runtime/collective/nccl/NcclApi.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rota {

/// A transfer that the GPU was asked for, or a recorded step with all of its
/// transfers.
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
  /// `patience`: seconds in which, while a transfer is under way, none ends and
  /// the device comes to no other position.
  NcclWatch(const NcclApi &nccl, const cuda::CudaDevice &device, int rank,
            double patience);
  /// Aborts the communicators that are still there.
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
  /// Aborts all communicators, without waiting for the end of that: NCCL's
  /// abort returns only when each graph with its operations is destroyed. Only
  /// the first failure counts. Callable from any thread that does not hold
  /// `calls`.
  void fail(const std::string &message);
  /// Waits until the aborts have returned, at most ten seconds, and once.
  void awaitAborts();
  void setPosition(const std::string &text);
  /// From now on, until the next setPosition, the position is what `reached`
  /// returns, where it is not empty.
  void follow(std::function<std::string()> reached);
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
  void notePosition();
  void checkErrors();
  void checkProgress();

  /// Aborts under way, whose threads may outlive the watch.
  struct Aborts {
    std::mutex mutex;
    std::condition_variable ended;
    size_t open = 0;
  };

  const NcclApi &nccl;
  const cuda::CudaDevice &device;
  const cuda::Gpu &gpu;
  const int rank;
  const double patience;
  std::atomic<bool> failed{false}, isConnected{false};
  double lastEnd; // last end of a transfer or an action; read by the watching
                  // thread
  int lastPosition = -1;
  bool awaited = false; // the aborts
  const std::shared_ptr<Aborts> aborts = std::make_shared<Aborts>();

  std::mutex mutex; // guards the rest
  std::condition_variable wake;
  std::string position = "start", failure;
  std::function<std::string()> reached;
  bool stopping = false;
  std::thread thread;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLWATCH_H
