// SPDX-License-Identifier: Apache-2.0
//
// The machine that holds a rank's tensors and computes on them. Ranks, tasks
// and the optimizer know device memory by address alone: they read and write
// its bytes through the functions here.
#ifndef ROTA_RUNTIME_DEVICE_DEVICE_H
#define ROTA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/Abi.h"
#include "runtime/Error.h"
#include "runtime/device/FullExperts.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/StepEnd.h"
#include "runtime/program/ElementType.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
  /// Has physical memory back `count` bytes from `begin` on, a multiple of 2
  /// MiB, where it otherwise comes page by page with the first writes. No byte
  /// changes. Any thread may call it.
  virtual void populate(int64_t begin, int64_t count) const {}

protected:
  explicit Arena(int64_t bytes) : size(bytes) {}

  /// highWater of `bytes` bytes that the host can read.
  static int64_t highWaterOf(const char *data, int64_t bytes) {
    constexpr int64_t kBlock = 64;
    int64_t end = bytes;
    while (end > 0 && data[end - 1] == 0)
      --end;
    return std::min(bytes, (end + kBlock - 1) / kBlock * kBlock);
  }

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

/// Bytes in flight from device memory to the host.
class HostRead {
public:
  virtual ~HostRead() = default;
  /// Waits for them. They live as long as this object.
  virtual std::span<const char> wait() = 0;
};

/// Work that was recorded, to be done again.
class Recording {
public:
  virtual ~Recording() = default;
  /// Asks the device for the work once more. All ranks that recorded together
  /// call it equally often; it may wait on the host until they have.
  virtual void run() = 0;
};

/// Records what ranks ask their devices for between the two calls, transfers
/// included, instead of doing it: work that is the same each time and that all
/// of them have done before, without reads, writes, points of time and anything
/// that waits for a device. All ranks of a run call both, in one order, from
/// their own threads. Throws RunError.
class Recorder {
public:
  virtual ~Recorder() = default;
  virtual void begin() = 0;
  /// `reached` tells how far this rank's device has come in its work, "stage 1,
  /// chunk 3, microbatch 2, F", from any thread as long as the recording lives,
  /// which must end before the communicator. Empty: not known.
  virtual std::unique_ptr<Recording>
  end(const std::function<std::string()> &reached) = 0;
};

/// Device memory for launchTogether, and the bytes that a GPU has there.
struct TableMemory {
  void *place = nullptr; // at a multiple of 16
  int64_t bytes = 0;
  std::vector<char> content = {};
};

/// The device failed while it did work that was asked for earlier.
struct DeviceError : RunError {
  using RunError::RunError;
};

/// Called from a rank's thread, with its context; a null context computes on
/// the calling thread. The device does what is asked for in this order. On the
/// CPU it is done when a function returns; a GPU may still work then, and what
/// goes wrong there is thrown as DeviceError by a later function that waits.
class Device {
public:
  virtual ~Device() = default;

  /// For people: "cpu", "NVIDIA H100 80GB HBM3".
  virtual std::string name() const = 0;
  /// Bytes of memory for tensors.
  struct Memory {
    int64_t free = 0, total = 0;
  };
  virtual Memory memory() const = 0;

  /// Memory for tensors, and host memory that it is copied to and from. Throws
  /// RunError when the system has not that much memory to give.
  virtual std::unique_ptr<Arena> makeArena(int64_t bytes) = 0;
  virtual std::unique_ptr<Arena> makeHostArena(int64_t bytes) = 0;

  /// Between places of device memory, which do not overlap.
  virtual void copy(RotaContext *context, const void *source, void *destination,
                    int64_t bytes) = 0;
  virtual void zero(RotaContext *context, void *place, int64_t bytes) = 0;
  /// From device memory to host memory, and back. `read` waits for the work
  /// before; the bytes of `write` are taken before it returns.
  virtual void read(const void *source, void *host, int64_t bytes) = 0;
  virtual void write(const void *host, void *destination, int64_t bytes) = 0;
  /// A read in the order of the work, which the host waits for later.
  virtual std::unique_ptr<HostRead> startRead(const void *source,
                                              int64_t bytes) = 0;

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

  /// sum[i] += terms[i], both f32 or both bf16, in f32 and rounded once.
  virtual void add(RotaContext *context, ElementType type, void *sum,
                   const void *terms, int64_t count) = 0;
  /// To bf16: to the nearest, ties to even.
  virtual void round(RotaContext *context, const float *values,
                     uint16_t *rounded, int64_t count) = 0;
  /// *sum = the sum of the values in f64, in an order that follows from their
  /// number.
  virtual void sum(RotaContext *context, const float *values, int64_t count,
                   double *sum) = 0;
  /// The norm of the gradient and the factor of each of its elements:
  ///   total = sum of squares[order[i]], for ascending i
  ///   weight = sum of losses[r][c][1], for ascending c, then r
  ///   norm = sqrt(total) / weight
  ///   *scale = (clip > 0 ? min(1, clip / (norm + 1e-6)) : 1) / weight
  /// in f64; norm and scale are 0 where the weight is. result = {norm, weight,
  /// the least i whose square is not finite, or -1}; the rest of it is as
  /// before.
  virtual void finishStep(const StepNumbers &numbers) = 0;
  /// Whether a step updates anything, after finishStep, and the scalars of its
  /// updates; all in f64:
  ///   loss = sum of losses[r][m][0] / sum of losses[r][m][1], each for
  ///     ascending m, then r; 0 where the weight is
  ///   reason = NotFinite where loss, norm or a square is not finite; with
  ///     deviations > 0 and a history of kHistoryLength / 2 steps or more, Loss
  ///     (Norm) where loss (norm) - mean > deviations * deviation of the last
  ///     kHistoryLength in the history, the deviation with n - 1; else None
  /// Loss and norm enter the history where the reason is None and the weight is
  /// not 0. stepScalars[i] = scalars[before][i] for those that nobody else
  /// gives, where `before` is 0 if result[kSkipResult] was None, else 1;
  /// stepScalars[skipNumber] = reason != None; result[kSkipResult] = reason.
  virtual void decideStep(const StepDecision &decision) = 0;
  /// cotangents[l] = factors[l][0] * weight / factors[l][1] in f64, rounded
  /// once, with the weight of finishStep.
  virtual void findCotangents(const CotangentNumbers &numbers) = 0;

  /// Asks for the work of both, which may run at the same time, after all that
  /// was asked for before and before all that comes.
  virtual void runBeside(FunctionRef<void()> first,
                         FunctionRef<void()> second) {
    first();
    second();
  }

  /// Calls ask(i) for each i < count. Each asks for a task, and then at most
  /// for a sum of what the task has written; no two write one place or read
  /// what another writes. A GPU does launches that are all that their task does
  /// as one for each RotaGpuLaunch::table, after all other work, and after them
  /// all sums as one, by tables in `memory`. Those that are the same each time
  /// are written once, so that the work can be recorded from the second time
  /// on.
  virtual void launchTogether(RotaContext *context, TableMemory &memory,
                              int64_t count, FunctionRef<void(int64_t)> ask) {
    for (int64_t i = 0; i < count; ++i)
      ask(i);
  }

  /// rotaLaunch, rotaGemm and rotaCheckIndices of runtime/Abi.h. Memory for
  /// products is that of useWorkspace; without it there are none. `second` is
  /// for the second work of runBeside.
  virtual void launch(RotaContext *context, RotaKernel kernel,
                      void *const *args, int64_t rows, int64_t grain) = 0;
  virtual void multiply(RotaContext *context, const RotaGemm &gemm,
                        const void *a, const void *b, void *c) = 0;
  virtual void checkIndices(RotaContext *context, const int32_t *indices,
                            int64_t count, int64_t least, int64_t bound) = 0;
  /// Makes ready what tasks will ask for, where that would hold them up: the
  /// host compiles their products, on all threads that are free; a GPU loads
  /// their code. runTasks(context) runs each task; with that context tasks do
  /// none of their work. Memory at the operands of products is zero, and stays
  /// so. The caller holds a core. Throws InputError where a library is missing.
  virtual void prepareTasks(RotaContext *context,
                            FunctionRef<void(RotaContext *)> runTasks) {}
  virtual void useWorkspace(void *place, void *second, int64_t bytes) = 0;

  /// Waits until all work is done.
  virtual void synchronize() = 0;
  /// Kernels, products and fills that a GPU was asked for so far, but for those
  /// of transfers; 0 on the host.
  virtual int64_t launches() const { return 0; }
  /// Whether the host is ahead of the device, so that it should read the
  /// results of a step while the next one runs.
  virtual bool isAsynchronous() const = 0;
  /// Numbers the work that follows, for messages: the number of the work that
  /// a DeviceError came from; -1: not known.
  virtual void setPosition(int number) = 0;
  virtual int position() const = 0;
  /// Names the call that the host asks for next, for fullExperts.
  virtual void setCall(int action, int layer) {}
  /// The first of the experts with too few rows that a kernel has met, since a
  /// kernel cannot fail its action; of work whose results the host has.
  virtual std::optional<FullExperts> fullExperts() const {
    return std::nullopt;
  }

  /// A point in the order of the work, and the time at which the device came to
  /// it, in seconds of a clock of its own; secondsAt waits for that. Points
  /// before `point` are forgotten with it.
  using TimePoint = int64_t;
  virtual TimePoint mark() = 0;
  virtual double secondsAt(TimePoint point) = 0;
  virtual void forget(TimePoint point) = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_DEVICE_H
