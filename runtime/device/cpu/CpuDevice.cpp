// SPDX-License-Identifier: Apache-2.0
//
// The host as a device: kernels are native functions, and its memory needs no
// copies.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/AvailableMemory.h"
#include "runtime/device/Context.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/HostArena.h"
#include "runtime/program/Convert.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <vector>

namespace rota {

/// Pieces for each thread: enough that all threads end at about the same time
/// although they start at different times, few enough that calls cost little.
static constexpr int64_t kPiecesPerThread = 8;

/// A sleeping helper needs about 30 us to wake up: loops that take less than
/// this on one thread do not gain from one.
static constexpr double kWorthHelp = 50e-6;
/// Work of each further helper: more of them would save less time than it takes
/// to wake them all.
static constexpr double kWorkOfHelper = 25e-6;
/// The estimate for a loop that never ran: worth all helpers.
static constexpr double kUnknownLoop = 1.0;

LoopCosts::Cost &LoopCosts::find(RotaCpuKernel kernel, int64_t rows) {
  auto mixed = reinterpret_cast<uintptr_t>(kernel) / 16 +
               static_cast<uint64_t>(rows) * 0x9E3779B97F4A7C15ull;
  Cost &cost = table[(mixed ^ mixed >> 32) % table.size()];
  if (cost.kernel != kernel || cost.rows != rows)
    cost = {kernel, rows, kUnknownLoop};
  return cost;
}

/// Runs the rows in pieces on this thread and as many free ones as are worth it
/// for a loop of `seconds` on one thread. The result is the new time of that.
static double runInPieces(RotaContext *context, RotaCpuKernel kernel,
                          void *const *args, int64_t rows, int64_t grain,
                          double seconds) {
  int64_t helpers = std::min<int64_t>(threadLimit(context) - 1,
                                      std::lround(seconds / kWorkOfHelper));
  int64_t grains = (rows + grain - 1) / grain;
  int64_t pieces = std::min(grains, (helpers + 1) * kPiecesPerThread);
  auto runPiece = [&](int64_t piece) {
    int64_t begin = grains * piece / pieces * grain;
    int64_t end = std::min(rows, grains * (piece + 1) / pieces * grain);
    kernel(args, begin, end);
  };
  return context->cores->run(pieces, runPiece, helpers);
}

/// Elements in one piece of a host loop.
static constexpr int64_t kPieceElements = 1 << 16;

Device::Memory CpuDevice::memory() const {
  // Caches of files make room, so that all may be had.
  int64_t bytes = availableMemory() + swapSpace();
  return {bytes, bytes};
}

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

namespace {
/// Bytes that have been read already.
struct DoneRead : HostRead {
  explicit DoneRead(std::vector<char> bytes) : bytes(std::move(bytes)) {}
  std::span<const char> wait() override { return bytes; }
  std::vector<char> bytes;
};
} // namespace

std::unique_ptr<HostRead> CpuDevice::startRead(const void *source,
                                               int64_t bytes) {
  auto *first = static_cast<const char *>(source);
  return std::make_unique<DoneRead>(std::vector<char>(first, first + bytes));
}

static float sumOf(float a, float b) { return a + b; }
static uint16_t sumOf(uint16_t a, uint16_t b) {
  return toBf16(fromBf16(a) + fromBf16(b));
}

template <typename T>
static void addElements(int64_t count, char *sum, const char *terms) {
  auto *values = reinterpret_cast<T *>(sum);
  auto *more = reinterpret_cast<const T *>(terms);
  for (int64_t i = 0; i < count; ++i)
    values[i] = sumOf(values[i], more[i]);
}

void CpuDevice::add(RotaContext *context, ElementType type, void *sum,
                    const void *terms, int64_t count) {
  int64_t bytes = byteSize(type);
  HostOperand operands[] = {
      {sum, bytes, HostOperand::Access::Update},
      {const_cast<void *>(terms), bytes, HostOperand::Access::Read}};
  hostLoop(context, count, operands,
           [&](int64_t begin, int64_t end, char *const *hosts) {
             auto *addAll = type == ElementType::BF16 ? addElements<uint16_t>
                                                      : addElements<float>;
             addAll(end - begin, hosts[0], hosts[1]);
           });
}

void CpuDevice::round(RotaContext *context, const float *values,
                      uint16_t *rounded, int64_t count) {
  HostOperand operands[] = {
      {const_cast<float *>(values), 4, HostOperand::Access::Read},
      {rounded, 2, HostOperand::Access::Write}};
  hostLoop(context, count, operands,
           [](int64_t begin, int64_t end, char *const *hosts) {
             auto *values = reinterpret_cast<const float *>(hosts[0]);
             std::transform(values, values + (end - begin),
                            reinterpret_cast<uint16_t *>(hosts[1]), toBf16);
           });
}

void CpuDevice::sum(RotaContext *, const float *values, int64_t count,
                    double *sum) {
  *sum = std::accumulate(values, values + count, 0.0);
}

void CpuDevice::finishStep(const StepNumbers &numbers) {
  rota::finishStep(OneThread(), numbers);
}

void CpuDevice::decideStep(const StepDecision &decision) {
  rota::decideStep(OneThread(), decision);
}

void CpuDevice::findCotangents(const CotangentNumbers &numbers) {
  rota::findCotangents(OneThread(), numbers);
}

void CpuDevice::checkIndices(RotaContext *context, const int32_t *indices,
                             int64_t count, int64_t least, int64_t bound) {
  auto *wrong = std::find_if(indices, indices + count, [&](int64_t index) {
    return index < least || index >= bound;
  });
  if (wrong != indices + count)
    reportFailure(context,
                  fmt::format("position {} of the data: expected a number from "
                              "{} to {}, got {}",
                              wrong - indices, std::max<int64_t>(least, 0),
                              bound - 1, *wrong));
}

Device::TimePoint CpuDevice::mark() {
  return std::chrono::nanoseconds(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double CpuDevice::secondsAt(TimePoint point) {
  return 1e-9 * static_cast<double>(point);
}

void CpuDevice::launch(RotaContext *context, RotaKernel code, void *const *args,
                       int64_t rows, int64_t grain) {
  using Clock = std::chrono::steady_clock;
  RotaCpuKernel kernel = toFunction(code);
  if (threadLimit(context) == 1 || rows <= grain)
    return kernel(args, 0, rows);
  LoopCosts::Cost &cost = context->loopCosts.find(kernel, rows);
  if (cost.seconds >= kWorthHelp) {
    cost.seconds =
        runInPieces(context, kernel, args, rows, grain, cost.seconds);
    return;
  }
  auto start = Clock::now();
  kernel(args, 0, rows);
  cost.seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

void CpuDevice::multiply(RotaContext *context, const RotaGemm &gemm,
                         const void *a, const void *b, void *c) {
  multiplyOnCpu(context, gemm, a, b, c);
}

CpuDevice &cpuDevice() {
  static CpuDevice device;
  return device;
}

} // namespace rota
