// SPDX-License-Identifier: Apache-2.0
//
// Copies, fills and launches. Their operands are checked when they are asked
// for; they run later.
#include "runtime/device/simt/EmulatedContext.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace rota::simt {

using cuda::Result;
using Place = EmulatedMemory::Place;

EmulatedContext::EmulatedContext(const EmulatedDriverOptions &options)
    : hostCopies(emulator),
      runPieces(
          [this](int64_t pieces, const std::function<void(int64_t)> &body) {
            cores.run(pieces, body);
          }),
      cores(options.threads), memory(emulator, options.memoryBytes),
      modules(emulator.order()), streams(options.seed, emulator.order()) {}

/// Throws where the text says that something is wrong with an operation.
static void demandNothingWrong(const StreamOrder &order,
                               const OrderedOperation &operation,
                               const std::string &wrong) {
  if (!wrong.empty())
    throw RunError(
        fmt::format("{}: {}", order.describe(operation.id()), wrong));
}

/// Uses of memory are noted as late as the work runs.
Result EmulatedContext::add(cuda::StreamHandle stream, HostWork work) {
  auto shared = std::make_shared<HostWork>(std::move(work));
  auto start = [this, shared]() -> Run {
    return [this, shared](const OrderedOperation &operation) {
      StreamOrder &order = emulator.order();
      order.name(operation, shared->what);
      for (const MemoryUse &use : shared->uses)
        demandNothingWrong(order, operation, emulator.use(operation, use));
      shared->run();
    };
  };
  return streams.add(stream, start, shared->isReady);
}

Result EmulatedContext::free(cuda::Address address) {
  return streams.drain() ? memory.free(address) : cuda::kLaunchFailed;
}

Result EmulatedContext::freeHost(void *address) {
  return streams.drain() ? memory.freeHost(address) : cuda::kLaunchFailed;
}

Result EmulatedContext::unloadModule(cuda::ModuleHandle module) {
  return streams.drain() ? modules.unload(module) : cuda::kLaunchFailed;
}

Result EmulatedContext::allocateInStream(cuda::Address *address, size_t bytes,
                                         cuda::StreamHandle) {
  return memory.allocate(address, bytes);
}

Result EmulatedContext::freeInStream(cuda::Address address,
                                     cuda::StreamHandle stream) {
  auto *place = reinterpret_cast<void *>(address);
  size_t bytes = memory.bytesAt(place);
  if (bytes == 0)
    return cuda::kInvalidValue;
  return add(stream, {fmt::format("release of {} bytes", bytes),
                      {{place, bytes, /*isWrite=*/true}},
                      [this, address] { memory.free(address); }});
}

/// NVIDIA's driver takes pageable memory, too, but then waits for the copy, or
/// not, as it likes.
Result EmulatedContext::checkPlace(const void *place, size_t bytes) {
  switch (memory.find(place, bytes)) {
  case Place::Known:
    return cuda::kSuccess;
  case Place::Invalid:
    return cuda::kInvalidValue;
  case Place::Unknown:
    break;
  }
  return streams.fail(
      cuda::kInvalidValue,
      fmt::format("copy of {} bytes: expected memory of the driver, got "
                  "pageable memory at {}",
                  bytes, place));
}

Result EmulatedContext::copy(cuda::Address destination, cuda::Address source,
                             size_t bytes, cuda::StreamHandle stream) {
  auto *to = reinterpret_cast<char *>(destination);
  auto *from = reinterpret_cast<const char *>(source);
  for (const char *place : {from, static_cast<const char *>(to)})
    if (Result result = bytes > 0 ? checkPlace(place, bytes) : cuda::kSuccess)
      return result;
  StreamOrder &order = emulator.order();
  return streams.add(stream, [=, this, &order]() -> Run {
    std::shared_ptr<const HostCopies::Pending> pending;
    if (order.watches())
      pending = hostCopies.ask(memory.isHost(from) ? from : nullptr,
                               memory.isHost(to) ? to : nullptr, bytes);
    return [=, this, &order](const OrderedOperation &operation) {
      if (order.watches())
        order.name(operation, fmt::format("copy of {} bytes", bytes));
      auto demand = [&](const std::string &wrong) {
        demandNothingWrong(order, operation, wrong);
      };
      demand(emulator.use(operation, {from, bytes, /*isWrite=*/false}));
      if (pending)
        demand(pending->check()); // before the copy counts as the last write
      demand(emulator.use(operation, {to, bytes, /*isWrite=*/true}));
      if (bytes > 0)
        std::memmove(to, from, bytes);
    };
  });
}

Result EmulatedContext::fill8(cuda::Address destination, unsigned char value,
                              size_t count, cuda::StreamHandle stream) {
  auto *to = reinterpret_cast<unsigned char *>(destination);
  if (count > 0 && memory.find(to, count) != Place::Known)
    return cuda::kInvalidValue;
  return add(stream, {fmt::format("fill of {} bytes", count),
                      {{to, count, /*isWrite=*/true}},
                      [=] { std::fill_n(to, count, value); }});
}

Result EmulatedContext::launch(cuda::FunctionHandle function, unsigned gridX,
                               unsigned gridY, unsigned gridZ, unsigned blockX,
                               unsigned blockY, unsigned blockZ,
                               unsigned sharedBytes, cuda::StreamHandle stream,
                               void **arguments, void **extra) {
  if (extra)
    return cuda::kInvalidValue; // arguments in one block are not emulated
  std::shared_ptr<const QueuedLaunch> launch;
  Result result =
      modules.prepare(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
                      sharedBytes, arguments, launch);
  if (result != cuda::kSuccess)
    return result;
  return streams.add(stream, [this, launch]() -> Run {
    return [this, launch](const OrderedOperation &operation) {
      ComputeToken token(cores);
      launch->run(emulator, operation, runPieces);
    };
  });
}

} // namespace rota::simt
