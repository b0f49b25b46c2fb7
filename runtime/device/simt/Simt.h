// SPDX-License-Identifier: Apache-2.0
//
// Runs GPU kernels that lowering/simt/ compiled for this machine. Threads of a
// block are fibers of one host thread; blocks run one after another or on
// several host threads. No result depends on that, and reports do not either.
//
// Kernels that were compiled with checks report races in shared memory, reads
// of shared memory that was not written, and accesses that are misaligned or
// outside of the known buffers. Deadlocks and divergent barriers are found in
// any kernel.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_SIMT_H
#define ROTA_RUNTIME_DEVICE_SIMT_SIMT_H

#include "runtime/device/simt/Services.h"
#include "runtime/device/simt/StreamOrder.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace rota::simt {

class Block;
class Buffers;

struct Size {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

/// Bounds that every launch must keep: the shared memory is that of sm_90 and
/// later. The compiler sees to it that code for all GPUs needs no more than
/// sm_80 has.
inline constexpr uint32_t kMaxThreads = 1024;
inline constexpr int64_t kMaxSharedBytes = 227 << 10;

/// From now on the functions that a GPU approximates are off by up to 2 units
/// in the last place, which follow from the seed and the operand; with 0 they
/// are rounded. Zeros, infinities and the results of zero stay exact, as PTX
/// has them.
void perturbApproximations(uint64_t seed);

/// Runs body(0) .. body(pieces - 1), each once, in any order, on any threads;
/// returns when all are done.
using RunPieces = std::function<void(int64_t pieces,
                                     const std::function<void(int64_t)> &body)>;

/// Bytes that an operation other than a launch reads or writes: rows at a
/// distance of `pitch` bytes.
struct MemoryUse {
  const void *begin;
  uint64_t rowBytes;
  bool isWrite;
  uint64_t rows = 1, pitch = 0;
};

/// Bytes of global memory that threads accessed, as often as they did.
struct MovedBytes {
  uint64_t read = 0, written = 0;
  uint64_t sum() const { return read + written; }
  void operator+=(const MovedBytes &other) {
    read += other.read;
    written += other.written;
  }
};

struct Launch {
  Size grid, block;
  /// Bytes of shared memory after that of fixed size.
  int64_t sharedBytes = 0;
  /// Addresses of the kernel's arguments, as in RotaSimtKernel::entry.
  void *const *arguments = nullptr;
  /// Null: all blocks run on the calling thread.
  RunPieces runPieces = nullptr;
  /// Threads take turns in an order that follows from this number. Without it
  /// they go on in the order in which they were woken.
  std::optional<uint64_t> seed = std::nullopt;
  /// The most reports of a block; more are dropped.
  size_t maxReports = 8;
  /// Where the launch adds the bytes that it accesses, with checks; or null.
  MovedBytes *moved = nullptr;
  /// Null: comes after all launches before.
  const OrderedOperation *operation = nullptr;
};

/// An emulated GPU: the memory that kernels may use, and stacks and shared
/// memory that launches use in turn. One launch at a time. Other threads may
/// change the buffers, which waits for the end of the launch.
class Emulator {
public:
  Emulator();
  ~Emulator();

  /// Names memory that kernels may access, until clearBuffers(). With no buffer
  /// at all, accesses of global memory are not checked. `written` is false for
  /// memory whose bytes mean nothing before a kernel has written them. Buffers
  /// do not overlap.
  void addBuffer(std::string name, const void *data, size_t bytes,
                 bool written = true);
  void clearBuffers();
  /// Takes back the buffer that begins there.
  void removeBuffer(const void *data);

  /// The order of this GPU's operations. Where it watches, launches with checks
  /// and uses of memory are compared with those before.
  StreamOrder &order() { return operations; }
  /// Notes what an operation other than a launch is about to use. Returns what
  /// is wrong with it, or an empty text.
  std::string use(const OrderedOperation &operation, const MemoryUse &memory);
  /// The last operation that wrote a byte; 0: none that is known.
  OperationId lastWrite(const void *address);

  /// Runs the kernel and returns what is wrong with it, a line for each error,
  /// each with kernel, block, thread and place in the source: the errors of
  /// the first block that has any. Empty: all blocks have ended without error.
  /// After errors the contents of memory are not defined.
  std::vector<std::string> launch(const RotaSimtKernel &kernel,
                                  const Launch &launch);

private:
  std::unique_ptr<Block> takeBlock();
  void giveBack(std::unique_ptr<Block> block);

  StreamOrder operations;
  Lane ownLane;                   // lane of launches without an operation
  std::shared_mutex buffersMutex; // shared by launches
  std::unique_ptr<Buffers> buffers;
  std::mutex mutex;
  std::vector<std::unique_ptr<Block>> idle; // guarded by `mutex`
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_SIMT_H
