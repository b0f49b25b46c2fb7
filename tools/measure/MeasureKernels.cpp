// SPDX-License-Identifier: Apache-2.0
//
// Kernels that the compiler makes for trainers on this host: attention, fused
// rows, the loss. Compiled with exceptions.
#include "runtime/device/Context.h"
#include "tools/bench/CompiledOp.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/OpSources.h"
#include "tools/measure/Team.h"
#include "tools/measure/WorkMemory.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rota {
namespace {

using bench::CompiledOp;
using mlir::rota::Machine;

/// Buffers for so many copies of a compiled op in `memory`, which is made
/// larger where it must be: numbers of about 1, tokens 0. Returns the places of
/// each copy's buffers.
std::vector<std::vector<void *>> buffersOf(const CompiledOp &op, int64_t copies,
                                           std::optional<WorkMemory> &memory) {
  int64_t bytes = 0;
  for (const CompiledOp::Buffer &buffer : op.buffers())
    bytes += wholeLines(buffer.bytes);
  bytes *= copies;
  if (!provide(memory, bytes))
    memory->fill(bytes);
  int64_t offset = 0;
  std::vector<std::vector<void *>> places(copies);
  for (std::vector<void *> &copy : places)
    for (const CompiledOp::Buffer &buffer : op.buffers()) {
      copy.push_back(memory->at(offset));
      if (buffer.isInteger)
        std::memset(copy.back(), 0, size_t(buffer.bytes));
      offset += wholeLines(buffer.bytes);
    }
  return places;
}

double bytesOf(const CompiledOp &op) {
  double bytes = 0;
  for (const CompiledOp::Buffer &buffer : op.buffers())
    bytes += double(buffer.bytes);
  return bytes;
}

/// The op that a source makes; null where it cannot be compiled.
CompiledOp *compile(HostRounds &host, const std::string &source) {
  std::unique_ptr<CompiledOp> &op = host.ops[source];
  if (!op)
    op = CompiledOp::create(source);
  return op.get();
}

/// Calls of an op with those buffers, one copy after another. `cores` divide
/// its rows; null: all is done on the calling thread.
Repeated makeCalls(CompiledOp *op, std::vector<std::vector<void *>> buffers,
                   Cores *cores = nullptr) {
  struct Work {
    std::vector<std::vector<void *>> buffers;
    RotaContext context = {};
    size_t next = 0;
  };
  auto work = std::make_shared<Work>(std::move(buffers));
  work->context.cores = cores;
  return [op, work] {
    op->run(&work->context, work->buffers[work->next]);
    work->next = (work->next + 1) % work->buffers.size();
  };
}

/// Seconds of one call of the op that `source` makes, on `cores` cores at once;
/// nothing where it cannot be compiled.
std::optional<double> measureOp(HostRounds &host, const std::string &source,
                                int cores, double seconds, int64_t copies) {
  CompiledOp *op = compile(host, source);
  if (!op)
    return std::nullopt;
  double own = secondsTogether(cores, seconds, [&](int thread) {
    return makeCalls(op, buffersOf(*op, copies, host.kernels[thread]));
  });
  return host.times.add(source, own);
}

constexpr RowSizes kRows = {.tokens = 512, .width = 512, .vocabulary = 4096};
/// Two lengths: a query of the shorter one sees an eighth of the keys.
constexpr AttentionSizes kShortAttention = {
    .batch = 32, .tokens = 64, .heads = 2, .headSize = 64};
constexpr AttentionSizes kAttention = {
    .batch = 1, .tokens = 512, .heads = 2, .headSize = 64};

/// Rows that take some 100 us, so that waking the other cores pays.
constexpr RowSizes kSharedRows = {
    .tokens = 2048, .width = 512, .vocabulary = 4096};

struct MeasuredKernel {
  mlir::rota::Cost cost; // that the compiler gives it
  double bytes = 0;      // of its tensors
  double seconds = 0;    // of one call, all cores together
};

/// The kernel that a source makes, on all cores at once; nothing where it
/// cannot be compiled. Calls go through `times` as many copies of its
/// memory as copiesOf says.
std::optional<MeasuredKernel> measureKernel(HostRounds &host,
                                            const std::string &source,
                                            double seconds, int64_t times = 1) {
  CompiledOp *op = compile(host, source);
  if (!op)
    return std::nullopt;
  double bytes = bytesOf(*op);
  int64_t copies = times * copiesOf(int64_t(bytes));
  PacedSeconds own = pacedTogether(
      host.cores, seconds,
      [&](int thread) {
        return makeCalls(op, buffersOf(*op, copies, host.kernels[thread]));
      },
      makePace(host));
  double time = host.times.add(std::to_string(times) + " " + source, own);
  return MeasuredKernel{op->cost(), bytes, time / host.cores};
}

/// What a kernel does, and how long it takes, all cores together.
struct MeasuredRows {
  /// Elements loaded or stored, special functions, other operations.
  std::array<double, 3> amounts;
  double seconds = 0;
};

/// Seconds of one of each of the amounts, `least` at least, so that the sums
/// differ least from the measured times, relative to them: one after another
/// is set to its best value beside the others.
std::array<double, 3> fitRows(llvm::ArrayRef<MeasuredRows> kernels,
                              double least) {
  constexpr int repetitions = 1000;
  std::array<double, 3> each = {least, least, least};
  for (int i = 0; i < repetitions * 3; ++i) {
    double above = 0, below = 0;
    for (const MeasuredRows &kernel : kernels) {
      double others = 0;
      for (int j = 0; j < 3; ++j)
        others += j == i % 3 ? 0 : kernel.amounts[j] * each[j];
      double share = kernel.amounts[i % 3] / kernel.seconds;
      above += share * (1 - others / kernel.seconds);
      below += share * share;
    }
    each[i % 3] = std::max(least, above / below);
  }
  return each;
}

/// Rates of kernels that are no products. False where one cannot be compiled.
bool measureRows(const std::string &type, mlir::rota::TypeRates &rates,
                 HostRounds &host, double seconds) {
  std::vector<std::string> sources = rowSources(type, kRows);
  double bytesOfElement = type == "bf16" ? 2 : 4;
  std::vector<MeasuredRows> kernels;
  for (const std::string &source : sources) {
    auto kernel = measureKernel(host, source, seconds / double(sources.size()));
    if (!kernel)
      return false;
    const mlir::rota::Cost &cost = kernel->cost;
    kernels.push_back({{kernel->bytes / bytesOfElement, cost.specialFunctions,
                        otherOperations(cost)},
                       kernel->seconds});
  }
  // Nothing is faster than a product's operation.
  std::array<double, 3> fitted = fitRows(kernels, 1 / rates.flopsPerSecond);
  rates.elementsPerSecond = 1 / fitted[0];
  rates.specialFunctionsPerSecond = 1 / fitted[1];
  rates.rowFlopsPerSecond = 1 / fitted[2];
  return true;
}

/// Sets the rate of long attention, and the keys that a query takes beside
/// those it sees, from the times of the two lengths.
void setAttention(const MeasuredKernel &shortOne, const MeasuredKernel &longOne,
                  double &rate, double &keys) {
  auto seenKeys = [](const AttentionSizes &sizes) {
    return double(sizes.tokens + 1) / 2;
  };
  auto secondsOfFlop = [](const MeasuredKernel &kernel) {
    return kernel.seconds / kernel.cost.flops;
  };
  double slower = secondsOfFlop(shortOne) - secondsOfFlop(longOne);
  double secondsOfKey = std::max(0.0, slower) / (1 / seenKeys(kShortAttention) -
                                                 1 / seenKeys(kAttention));
  double endless = secondsOfFlop(longOne) - secondsOfKey / seenKeys(kAttention);
  // Not less than half of what was measured, whatever else the host did.
  endless = std::max(endless, secondsOfFlop(longOne) / 2);
  rate = 1 / endless;
  keys = secondsOfKey / endless;
}

/// Rates of a type. False where a kernel cannot be compiled.
bool measureType(const std::string &type, mlir::rota::TypeRates &rates,
                 HostRounds &host, double seconds) {
  AttentionSources shortOnes = attentionSources(type, kShortAttention),
                   longOnes = attentionSources(type, kAttention);
  // Attention reads rows that are far apart. What other cores have just written
  // comes as slowly then as what no cache holds.
  constexpr int64_t timesCached = 4;
  auto measure = [&](const std::string &source) {
    return measureKernel(host, source, seconds / 8, timesCached);
  };
  auto shortForward = measure(shortOnes.forward),
       shortBackward = measure(shortOnes.backward),
       longForward = measure(longOnes.forward),
       longBackward = measure(longOnes.backward);
  if (!shortForward || !shortBackward || !longForward || !longBackward)
    return false;
  setAttention(*shortForward, *longForward, rates.attentionForward,
               rates.attentionForwardKeys);
  setAttention(*shortBackward, *longBackward, rates.attentionBackward,
               rates.attentionBackwardKeys);
  return measureRows(type, rates, host, seconds / 2);
}

/// Sets what a kernel takes longer, on average, where all cores share it. False
/// where one cannot be compiled.
bool measureSharing(Machine &machine, HostRounds &host, double seconds) {
  std::vector<std::string> sources = rowSources("f32", kSharedRows);
  sources.resize(2); // normalization and its gradient
  AttentionSources attention = attentionSources("f32", kAttention);
  sources.insert(sources.end(), {attention.forward, attention.backward});
  double each = seconds / double(sources.size()) / 2, longer = 0;
  for (const std::string &source : sources) {
    auto alone = measureKernel(host, source, each);
    if (!alone)
      return false;
    CompiledOp *op = compile(host, source);
    int64_t copies = copiesOf(int64_t(alone->bytes));
    Repeated calls =
        makeCalls(op, buffersOf(*op, copies, host.kernels.front()), &host.team);
    double shared =
        host.times.add("shared " + source,
                       pacedShared(host.team, each, calls, makePace(host)));
    longer += shared - alone->seconds;
  }
  machine.sharedLaunch = std::max(0.0, longer / double(sources.size()));
  return true;
}

/// Rows of 1,024 that no cache holds.
constexpr int64_t kRowsInMemory = 8192;

struct Streamed {
  double bytes = 0;     // of the kernel's tensors
  double perSecond = 0; // on all cores
};

/// Additions of growing tensors. A tensor is used again after others of a
/// layer, of so many times the bytes of one kernel as the cache is meant for.
std::optional<std::vector<Streamed>> measureStreams(HostRounds &host,
                                                    double seconds) {
  constexpr int64_t rows[] = {32, 64, 128, 256, 512, 1024, 2048, kRowsInMemory};
  std::vector<Streamed> streams;
  for (int64_t each : rows) {
    std::string source = additionSource(each);
    auto time = measureOp(host, source, host.cores, seconds / std::size(rows),
                          Machine::kBytesBetween);
    if (!time)
      return std::nullopt;
    double bytes = bytesOf(*host.ops.at(source));
    streams.push_back({bytes, bytes * host.cores / *time});
  }
  return streams;
}

/// Bytes a second, of all cores, of a kernel whose results lie on its operands,
/// in memory; 0 where it cannot be compiled.
double measureUpdates(HostRounds &host, double seconds) {
  std::string source = updateSource(kRowsInMemory / 2);
  CompiledOp *op = compile(host, source);
  if (!op)
    return 0;
  double own = secondsTogether(host.cores, seconds, [&](int thread) {
    auto buffers = buffersOf(*op, 1, host.kernels[thread]);
    std::copy_n(buffers[0].begin(), 3, buffers[0].end() - 3);
    return makeCalls(op, std::move(buffers));
  });
  return bytesOf(*op) * host.cores / host.times.add("updated", own);
}

/// The largest tensors are in memory. Those that are streamed twice as fast and
/// more are in a cache, at the rate of the largest of them.
void setMemory(Machine &machine, const std::vector<Streamed> &streams,
               int cores) {
  machine.memoryEfficiency =
      std::min(1.0, streams.back().perSecond / machine.memoryBytesPerSecond);
  for (const Streamed &stream : streams)
    if (stream.perSecond > 2 * streams.back().perSecond) {
      machine.cacheBytes = stream.bytes * cores;
      machine.cacheBytesPerSecond = stream.perSecond;
    }
}

} // namespace

bool measureKernels(Machine &machine, HostRounds &host, double seconds) {
  auto launch = measureOp(host, additionSource(1), 1, seconds / 16, 1);
  auto streams = measureStreams(host, seconds / 4);
  machine.updatedPerSecond = measureUpdates(host, seconds / 16);
  if (!launch || !streams || machine.updatedPerSecond == 0)
    return false;
  machine.launch = *launch;
  setMemory(machine, *streams, host.cores);
  for (auto &[name, rates] : machine.types)
    if (!measureType(name, rates, host,
                     seconds / 2 / double(machine.types.size())))
      return false;
  if (host.cores > 1 && !measureSharing(machine, host, seconds / 8))
    return false;
  // Other types: as f32.
  const mlir::rota::TypeRates &single = machine.types["f32"];
  machine.rowFlopsPerSecond = single.rowFlopsPerSecond;
  machine.attentionForward =
      std::min(1.0, single.attentionForward / single.flopsPerSecond);
  machine.attentionBackward =
      std::min(1.0, single.attentionBackward / single.flopsPerSecond);
  return true;
}

} // namespace rota
