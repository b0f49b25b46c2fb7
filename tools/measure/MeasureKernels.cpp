// SPDX-License-Identifier: Apache-2.0
//
// Kernels that the compiler makes for trainers on this host: attention, fused
// rows, the loss. Compiled with exceptions.
#include "runtime/device/Context.h"
#include "tools/bench/CompiledOp.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Team.h"
#include "tools/measure/WorkMemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace rota {
namespace {

using bench::CompiledOp;
using mlir::rota::Machine;

/// Buffers of one thread for a compiled op: numbers of about 1, tokens 0.
struct OpMemory {
  explicit OpMemory(const CompiledOp &op) {
    for (const CompiledOp::Buffer &buffer : op.buffers()) {
      auto &each =
          memory.emplace_back(std::make_unique<WorkMemory>(buffer.bytes));
      if (buffer.isInteger)
        std::memset(each->at(0), 0, size_t(each->bytes()));
      places.push_back(each->at(0));
    }
  }
  OpMemory(OpMemory &&) = default; // the places stay
  std::vector<std::unique_ptr<WorkMemory>> memory;
  std::vector<void *> places;
};

double bytesOf(const CompiledOp &op) {
  double bytes = 0;
  for (const CompiledOp::Buffer &buffer : op.buffers())
    bytes += double(buffer.bytes);
  return bytes;
}

/// Seconds of one call of the op on each core; nothing where it cannot be
/// compiled. Each call takes the next of `copies` of the op's memory.
std::optional<double> measureOp(CompiledOp *op, int cores, double seconds,
                                int64_t copies) {
  if (!op)
    return std::nullopt;
  return secondsTogether(cores, seconds, [op, copies](int) {
    struct Work {
      Work(const CompiledOp &op, int64_t copies) {
        for (int64_t copy = 0; copy < copies; ++copy)
          memory.emplace_back(op);
      }
      std::vector<OpMemory> memory;
      size_t next = 0;
      RotaContext context; // without cores: all on the calling thread
    };
    auto work = std::make_shared<Work>(*op, copies);
    return [op, work] {
      op->run(&work->context, work->memory[work->next].places);
      work->next = (work->next + 1) % work->memory.size();
    };
  });
}

/// A function of one op, or of ops that become one kernel, with their results.
std::string function(const std::string &arguments, const std::string &body,
                     const std::string &results, const std::string &types) {
  return fmt::format("func.func @f({}) -> ({}) {{\n{}\nreturn {} : {}\n}}",
                     arguments, types, body, results, types);
}

constexpr int64_t kTokens = 256, kWidth = 512, kVocabulary = 4096;

std::string matrix(int64_t rows, int64_t columns, const std::string &type) {
  return fmt::format("tensor<{}x{}x{}>", rows, columns, type);
}

/// Kernels without products of a layer and of the loss.
std::vector<std::string> rowSources(const std::string &type) {
  std::string x = matrix(kTokens, kWidth, type);
  std::string gain = fmt::format("tensor<{}xf32>", kWidth);
  std::string wide = matrix(kTokens, 3 * kWidth, type);
  std::string logits =
      fmt::format("tensor<1x{}x{}x{}>", kTokens, kVocabulary, type);
  std::string targets = fmt::format("tensor<1x{}xi32>", kTokens);
  std::string rows = fmt::format("tensor<1x{}xf32>", kTokens);
  return {
      function(fmt::format("%x: {0}, %a: {0}, %g: {1}", x, gain),
               fmt::format("%s = arith.addf %x, %a : {0}\n"
                           "%y = rota.rms_norm %s, %g epsilon = 1.0e-05 : "
                           "{0}, {1}",
                           x, gain),
               "%s, %y", x + ", " + x),
      function(fmt::format("%dy: {0}, %x: {0}, %g: {1}", x, gain),
               fmt::format("%dx, %dg = rota.rms_norm_grad %dy, %x, %g epsilon "
                           "= 1.0e-05 : ({0}, {0}, {1}) -> ({0}, {1})",
                           x, gain),
               "%dx, %dg", x + ", " + gain),
      function(fmt::format("%x: {0}, %u: {0}", wide),
               fmt::format("%y = rota.activation silu %x, %u : {0}", wide),
               "%y", wide),
      function(fmt::format("%l: {0}, %t: {1}", logits, targets),
               fmt::format("%r:3 = rota.cross_entropy %l, %t : ({0}, {1}) -> "
                           "(tensor<f32>, tensor<f32>, {2})",
                           logits, targets, rows),
               "%r#0, %r#1, %r#2", "tensor<f32>, tensor<f32>, " + rows),
      function(fmt::format("%g: tensor<f32>, %l: {0}, %t: {1}, %m: {2}", logits,
                           targets, rows),
               fmt::format("%r = rota.cross_entropy_grad %g, %l, %t, %m : "
                           "(tensor<f32>, {0}, {1}, {2}) -> ({0})",
                           logits, targets, rows),
               "%r", logits)};
}

struct AttentionSources {
  std::string forward, backward;
};
AttentionSources attentionSources(const std::string &type) {
  std::string q = fmt::format("tensor<1x512x2x64x{}>", type);
  std::string line = "tensor<1x2x512xf32>";
  return {function(fmt::format("%q: {0}, %k: {0}, %v: {0}", q),
                   fmt::format("%r:2 = rota.attention %q, %k, %v scale = 0.125 "
                               ": ({0}, {0}, {0}) -> ({0}, {1})",
                               q, line),
                   "%r#0, %r#1", q + ", " + line),
          function(fmt::format("%dy: {0}, %q: {0}, %k: {0}, %v: {0}, %y: {0}, "
                               "%l: {1}",
                               q, line),
                   fmt::format("%r:3 = rota.attention_grad %dy, %q, %k, %v, "
                               "%y, %l scale = 0.125 : ({0}, {0}, {0}, {0}, "
                               "{0}, {1}) -> ({0}, {0}, {0})",
                               q, line),
                   "%r#0, %r#1, %r#2", q + ", " + q + ", " + q)};
}

/// An addition, whose time is that of memory.
std::string additionSource(int64_t rows) {
  std::string x = matrix(rows, 1024, "f32");
  return function(fmt::format("%x: {0}, %y: {0}", x),
                  fmt::format("%z = arith.addf %x, %y : {0}", x), "%z", x);
}

/// FLOP/s on all cores of the kernels that the sources make, one after another.
std::optional<double> rateOf(llvm::ArrayRef<std::string> sources, int cores,
                             double seconds) {
  double work = 0, time = 0;
  for (const std::string &source : sources) {
    auto op = CompiledOp::create(source);
    int64_t copies = op ? copiesOf(int64_t(bytesOf(*op))) : 1;
    auto each =
        measureOp(op.get(), cores, seconds / double(sources.size()), copies);
    if (!each)
      return std::nullopt;
    work += op->cost().flops * cores;
    time += *each;
  }
  return work / time;
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
                 int cores, double seconds) {
  std::vector<std::string> sources = rowSources(type);
  double bytesOfElement = type == "bf16" ? 2 : 4;
  std::vector<MeasuredRows> kernels;
  for (const std::string &source : sources) {
    auto op = CompiledOp::create(source);
    int64_t copies = op ? copiesOf(int64_t(bytesOf(*op))) : 1;
    auto time =
        measureOp(op.get(), cores, seconds / double(sources.size()), copies);
    if (!time)
      return false;
    mlir::rota::Cost cost = op->cost();
    kernels.push_back({{bytesOf(*op) / bytesOfElement, cost.specialFunctions,
                        cost.flops - cost.specialFunctions},
                       *time / cores});
  }
  // Nothing is faster than a product's operation.
  std::array<double, 3> fitted = fitRows(kernels, 1 / rates.flopsPerSecond);
  rates.elementsPerSecond = 1 / fitted[0];
  rates.specialFunctionsPerSecond = 1 / fitted[1];
  rates.rowFlopsPerSecond = 1 / fitted[2];
  return true;
}

/// Rates of a type. False where a kernel cannot be compiled.
bool measureType(const std::string &type, mlir::rota::TypeRates &rates,
                 int cores, double seconds) {
  AttentionSources attention = attentionSources(type);
  auto forward = rateOf(attention.forward, cores, seconds / 4);
  auto backward = rateOf(attention.backward, cores, seconds / 4);
  if (!forward || !backward)
    return false;
  rates.attentionForward = *forward;
  rates.attentionBackward = *backward;
  return measureRows(type, rates, cores, seconds / 2);
}

struct Streamed {
  double bytes = 0;     // of the kernel's tensors
  double perSecond = 0; // on all cores
};

/// Additions of growing tensors. A tensor is used again after others of a
/// layer, some eight times the bytes of one kernel.
std::optional<std::vector<Streamed>> measureStreams(int cores, double seconds) {
  constexpr int64_t rows[] = {32, 64, 128, 256, 512, 1024, 2048, 8192};
  std::vector<Streamed> streams;
  for (int64_t each : rows) {
    auto op = CompiledOp::create(additionSource(each));
    auto time = measureOp(op.get(), cores, seconds / std::size(rows), 8);
    if (!time)
      return std::nullopt;
    double bytes = bytesOf(*op);
    streams.push_back({bytes, bytes * cores / *time});
  }
  return streams;
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

bool measureKernels(Machine &machine, int cores, double seconds) {
  auto tiny = CompiledOp::create(additionSource(1));
  auto launch = measureOp(tiny.get(), 1, seconds / 16, 1);
  auto streams = measureStreams(cores, seconds / 3);
  if (!launch || !streams)
    return false;
  machine.launch = *launch;
  setMemory(machine, *streams, cores);
  for (auto &[name, rates] : machine.types)
    if (!measureType(name, rates, cores,
                     seconds / 2 / double(machine.types.size())))
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
