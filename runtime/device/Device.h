// SPDX-License-Identifier: Apache-2.0
//
// The machine that holds a rank's tensors and computes on them. Ranks, tasks
// and the optimizer know device memory by address alone: they read and write
// its bytes through the functions here.
#ifndef ROTA_RUNTIME_DEVICE_DEVICE_H
#define ROTA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/Abi.h"
#include "runtime/device/cpu/Parallel.h"

#include <cstdint>
#include <memory>
#include <span>

namespace rota {

/// One allocation of exactly the planned bytes, zero at first.
class Arena {
public:
  virtual ~Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  int64_t bytes() const { return size; }
  /// The address of a place; null for the offset -1 ("none").
  void *at(int64_t offset) const {
    return offset < 0 ? nullptr : base + offset;
  }

  /// The end of the last byte that is not zero, rounded up to the 64 bytes that
  /// blocks are aligned to: the highest byte that the run wrote.
  virtual int64_t highWater() const = 0;
  /// Bytes of the allocation that physical memory backs now.
  virtual int64_t residentBytes() const = 0;

protected:
  explicit Arena(int64_t bytes) : size(bytes) {}

  char *base = nullptr;
  int64_t size;
};

/// A tensor in device memory of which a host loop reads or writes elements.
struct HostOperand {
  enum class Access { Read, Write, Update };
  void *place;
  int64_t elementBytes;
  Access access;
};

/// Called from a rank's thread, with its context; a null context computes on
/// the calling thread. Work that was asked for is done when a function returns.
class Device {
public:
  virtual ~Device() = default;

  /// Memory for tensors, and host memory that it is copied to and from. Throws
  /// RunError when the system has not that much memory to give.
  virtual std::unique_ptr<Arena> makeArena(int64_t bytes) = 0;
  virtual std::unique_ptr<Arena> makeHostArena(int64_t bytes) = 0;

  /// Between places of device memory, which do not overlap.
  virtual void copy(RotaContext *context, const void *source, void *destination,
                    int64_t bytes) = 0;
  virtual void zero(RotaContext *context, void *place, int64_t bytes) = 0;
  /// From device memory to host memory, and back.
  virtual void read(const void *source, void *host, int64_t bytes) = 0;
  virtual void write(const void *host, void *destination, int64_t bytes) = 0;

  /// A loop of the host over `count` elements of device tensors, for work that
  /// no task does: body(begin, end, hosts) for pieces of [0, count) on the
  /// context's threads, where hosts[i] is host memory with the elements from
  /// `begin` on of operand i. At most kMostHostOperands operands.
  virtual void
  hostLoop(RotaContext *context, int64_t count,
           std::span<const HostOperand> operands,
           FunctionRef<void(int64_t begin, int64_t end, char *const *hosts)>
               body) = 0;
  static constexpr size_t kMostHostOperands = 2;

  /// rotaLaunch and rotaGemm of runtime/Abi.h.
  virtual void launch(RotaContext *context, RotaKernel kernel,
                      void *const *args, int64_t rows, int64_t grain) = 0;
  virtual void multiply(RotaContext *context, const RotaGemm &gemm,
                        const void *a, const void *b, void *c) = 0;
};

/// The device whose memory and kernels are the host's own.
Device &cpuDevice();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_DEVICE_H
