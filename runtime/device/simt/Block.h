// SPDX-License-Identifier: Apache-2.0
//
// One block of a launch: its threads, what they wait for, and its memory. A
// Block runs many blocks of the same or of different kernels one after another,
// on one host thread at a time.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_BLOCK_H
#define ROTA_RUNTIME_DEVICE_SIMT_BLOCK_H

#include "runtime/device/simt/BlockMemory.h"
#include "runtime/device/simt/Collectives.h"
#include "runtime/device/simt/PendingProducts.h"
#include "runtime/device/simt/Reports.h"
#include "runtime/device/simt/Simt.h"
#include "runtime/device/simt/ThreadScheduler.h"

namespace rota::simt {

/// An asynchronous copy that has not landed.
struct Copy {
  char *to;
  const char *from;
  uint32_t bytes, sourceBytes, site;
};

struct Thread {
  uint32_t number, lane, warp;
  std::array<uint32_t, 3> index; // x, y, z
  bool ended = false;
  uint32_t waitSite = 0; // 0: does not wait
  Words result{};        // result of the last collective
  std::vector<Copy> copies;
  std::vector<uint32_t> groups; // copies in each committed group, oldest first
  uint32_t uncommitted = 0;     // copies after those of the groups
  PendingProducts products;
};

class Block {
public:
  explicit Block(const Buffers &buffers);

  /// The blocks that follow are of this launch.
  void startLaunch(const OrderedOperation &launch, const StreamOrder &order) {
    memory.startLaunch(launch, order);
  }
  const MovedBytes &getMovedBytes() const { return memory.getMovedBytes(); }
  /// Runs block `number` of the grid and returns its errors.
  std::vector<std::string> run(const RotaSimtKernel &kernel,
                               const Launch &launch, uint64_t number);

  /// The block that runs on this host thread.
  static Block &current();

  // For threads of the block, by way of the services.
  Thread &running() { return threads[scheduler.running()]; }
  const Launch &getLaunch() const { return *launch; }
  std::array<uint32_t, 3> getIndex() const { return index; }
  char *sharedMemory() const { return memory.shared(); }
  void read(MemoryAccess access);
  void write(MemoryAccess access, const void *value);
  void barrier(uint32_t site);
  /// Waits for the lanes of `mask` that exist, and returns this lane's result.
  Words collective(WarpOperation operation, uint32_t mask, uint32_t site,
                   const Operands &operands);
  void copy(const Copy &copy);
  void commitCopies();
  void waitForCopies(uint32_t groups);
  void readForProduct(MemoryAccess access);
  void waitForProducts(uint32_t groups);
  /// `mayBePending`: another product adds to the sums.
  void takeSums(std::span<float> sums, bool mayBePending, uint32_t site);

private:
  struct Barrier {
    std::vector<uint32_t> waiting; // threads
    /// The thread of each warp that came first, if any.
    std::array<const Thread *, kMaxWarps> first{};
    void clear() {
      waiting.clear();
      first.fill(nullptr);
    }
  };

  static void runThread(void *block);
  void startThreads();
  void suspend(uint32_t site);
  void wake(Thread &thread);

  void reportUnaligned(const Thread &first, uint32_t site);
  void finish(PendingCollective &pending);
  void readRows(const PendingCollective &pending);
  void land(Thread &thread, const Copy &copy);
  void reportStuck();
  void reportDivergence(const Thread &stuck, const Thread &other);
  std::string where(const Thread &thread) const;
  bool waitsAtBarrier(const Thread &thread) const;
  [[noreturn]] void stop();

  Reports reports;
  BlockMemory memory;
  ThreadScheduler scheduler;
  std::vector<Thread> threads;
  std::vector<uint32_t> liveLanes; // by warp
  Barrier atBarrier;
  std::vector<PendingCollective> pending;
  const RotaSimtKernel *kernel = nullptr;
  const Launch *launch = nullptr;
  std::array<uint32_t, 3> index{};
  bool stopped = false;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_BLOCK_H
