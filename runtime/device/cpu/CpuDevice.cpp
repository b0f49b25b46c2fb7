// SPDX-License-Identifier: Apache-2.0
//
// The host as a device: kernels are native functions, and its memory needs no
// copies.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/Context.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/HostArena.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace rota {

/// Pieces for each thread: enough that all threads end at about the same time
/// although they start at different times, few enough that calls cost little.
static constexpr int64_t kPiecesPerThread = 8;

/// A sleeping helper needs about 30 us to wake up: loops that take less than
/// this on one thread do not gain from one.
static constexpr double kWorthHelp = 50e-6;

LoopCosts::Cost &LoopCosts::find(RotaCpuKernel kernel, int64_t rows) {
  auto mixed = reinterpret_cast<uintptr_t>(kernel) / 16 +
               static_cast<uint64_t>(rows) * 0x9E3779B97F4A7C15ull;
  Cost &cost = table[(mixed ^ mixed >> 32) % table.size()];
  if (cost.kernel != kernel || cost.rows != rows)
    cost = {kernel, rows, kWorthHelp};
  return cost;
}

/// Runs the rows in pieces on all threads that are free.
static void runInPieces(RotaContext *context, RotaCpuKernel kernel,
                        void *const *args, int64_t rows, int64_t grain) {
  int64_t grains = (rows + grain - 1) / grain;
  int64_t pieces = std::min(grains, threadLimit(context) * kPiecesPerThread);
  parallelPieces(context, pieces, [&](int64_t piece) {
    int64_t begin = grains * piece / pieces * grain;
    int64_t end = std::min(rows, grains * (piece + 1) / pieces * grain);
    kernel(args, begin, end);
  });
}

/// Elements in one piece of a host loop.
static constexpr int64_t kPieceElements = 1 << 16;

std::unique_ptr<Arena> CpuDevice::makeArena(int64_t bytes) {
  return std::make_unique<HostArena>(bytes);
}

std::unique_ptr<Arena> CpuDevice::makeHostArena(int64_t bytes) {
  return std::make_unique<HostArena>(bytes);
}

void CpuDevice::copy(RotaContext *context, const void *source,
                     void *destination, int64_t bytes) {
  HostOperand operands[] = {
      {const_cast<void *>(source), 1, HostOperand::Access::Read},
      {destination, 1, HostOperand::Access::Write}};
  hostLoop(context, bytes, operands,
           [](int64_t begin, int64_t end, char *const *hosts) {
             std::memcpy(hosts[1], hosts[0], static_cast<size_t>(end - begin));
           });
}

void CpuDevice::zero(RotaContext *context, void *place, int64_t bytes) {
  HostOperand operands[] = {{place, 1, HostOperand::Access::Write}};
  hostLoop(context, bytes, operands,
           [](int64_t begin, int64_t end, char *const *hosts) {
             std::memset(hosts[0], 0, static_cast<size_t>(end - begin));
           });
}

void CpuDevice::read(const void *source, void *host, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(host, source, static_cast<size_t>(bytes));
}

void CpuDevice::write(const void *host, void *destination, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(destination, host, static_cast<size_t>(bytes));
}

void CpuDevice::hostLoop(
    RotaContext *context, int64_t count, std::span<const HostOperand> operands,
    FunctionRef<void(int64_t, int64_t, char *const *)> body) {
  parallelPieces(context, (count + kPieceElements - 1) / kPieceElements,
                 [&](int64_t piece) {
                   int64_t begin = piece * kPieceElements;
                   char *hosts[kMostHostOperands];
                   for (size_t i = 0; i < operands.size(); ++i)
                     hosts[i] = static_cast<char *>(operands[i].place) +
                                begin * operands[i].elementBytes;
                   body(begin, std::min(count, begin + kPieceElements), hosts);
                 });
}

void CpuDevice::launch(RotaContext *context, RotaKernel code, void *const *args,
                       int64_t rows, int64_t grain) {
  using Clock = std::chrono::steady_clock;
  RotaCpuKernel kernel = toFunction(code);
  if (threadLimit(context) == 1 || rows <= grain)
    return kernel(args, 0, rows);
  LoopCosts::Cost &cost = context->loopCosts.find(kernel, rows);
  bool alone = cost.seconds < kWorthHelp;
  auto start = Clock::now();
  if (alone)
    kernel(args, 0, rows);
  else
    runInPieces(context, kernel, args, rows, grain);
  // With helpers the loop is between 1 and the number of threads times as fast.
  // The factor 1.5 is an estimate on the side of using helpers again.
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  cost.seconds = alone ? seconds : 1.5 * seconds;
}

void CpuDevice::multiply(RotaContext *context, const RotaGemm &gemm,
                         const void *a, const void *b, void *c) {
  multiplyOnCpu(context, gemm, a, b, c);
}

Device &cpuDevice() {
  static CpuDevice device;
  return device;
}

} // namespace rota
