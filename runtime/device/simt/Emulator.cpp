// SPDX-License-Identifier: Apache-2.0
//
// The grid of a launch, spread over host threads.
#include "runtime/device/simt/Block.h"
#include "runtime/device/simt/Buffers.h"
#include "runtime/device/simt/Simt.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>

namespace rota::simt {

/// Pieces of a grid: enough to keep many host threads busy to the end.
static constexpr int64_t kPieces = 64;

Emulator::Emulator()
    : ownLane(operations.makeLane("the emulator")),
      buffers(std::make_unique<Buffers>()) {}

Emulator::~Emulator() = default;

void Emulator::addBuffer(std::string name, const void *data, size_t bytes,
                         bool written) {
  std::lock_guard lock(buffersMutex);
  buffers->add(std::move(name), data, bytes, written);
}

void Emulator::clearBuffers() {
  std::lock_guard lock(buffersMutex);
  buffers->clear();
}

void Emulator::removeBuffer(const void *data) {
  std::lock_guard lock(buffersMutex);
  buffers->remove(data);
}

std::string Emulator::use(const OrderedOperation &operation,
                          const MemoryUse &memory) {
  if (operation.id() == 0)
    return "";
  std::shared_lock lock(buffersMutex);
  const char *verb = memory.isWrite ? "writes" : "reads";
  auto *row = static_cast<const char *>(memory.begin);
  for (uint64_t i = 0; i < memory.rows && memory.rowBytes > 0; ++i) {
    const GlobalBuffer *buffer = buffers->find(row, memory.rowBytes);
    if (!buffer)
      return fmt::format("{} {}", verb,
                         buffers->describe(row, memory.rowBytes));
    auto conflict =
        buffer->shadow->access(memory.isWrite, buffer->offsetOf(row),
                               memory.rowBytes, operation, /*block=*/0);
    if (conflict)
      return fmt::format("{} {}", verb,
                         describe(*conflict, *buffer, operations));
    row += memory.pitch;
  }
  return "";
}

OperationId Emulator::lastWrite(const void *address) {
  std::shared_lock lock(buffersMutex);
  const GlobalBuffer *buffer = buffers->find(address, 1);
  return buffer ? buffer->shadow->lastWrite(buffer->offsetOf(address)) : 0;
}

std::unique_ptr<Block> Emulator::takeBlock() {
  std::lock_guard lock(mutex);
  if (idle.empty())
    return std::make_unique<Block>(*buffers);
  std::unique_ptr<Block> block = std::move(idle.back());
  idle.pop_back();
  return block;
}

void Emulator::giveBack(std::unique_ptr<Block> block) {
  std::lock_guard lock(mutex);
  idle.push_back(std::move(block));
}

/// The bound that the launch exceeds, or nothing.
static std::vector<std::string> checkSizes(const RotaSimtKernel &kernel,
                                           const Launch &launch) {
  if (launch.grid.count() == 0 || launch.block.count() == 0 ||
      launch.block.count() > kMaxThreads)
    return {fmt::format(
        "kernel '{}': expected at least one block of 1 to {} threads, got a "
        "grid of {} x {} x {} and blocks of {} x {} x {}",
        kernel.name, kMaxThreads, launch.grid.x, launch.grid.y, launch.grid.z,
        launch.block.x, launch.block.y, launch.block.z)};
  uint64_t bound = static_cast<uint64_t>(kernel.mostThreads);
  if (bound != 0 && launch.block.count() > bound)
    return {fmt::format("kernel '{}': expected blocks of at most {} threads, "
                        "its launch bound, got {}",
                        kernel.name, bound, launch.block.count())};
  int64_t shared = kernel.sharedBytes + launch.sharedBytes;
  if (launch.sharedBytes < 0 || shared > kMaxSharedBytes)
    return {fmt::format("kernel '{}': expected at most {} bytes of shared "
                        "memory, got {} of fixed size and {} more",
                        kernel.name, kMaxSharedBytes, kernel.sharedBytes,
                        launch.sharedBytes)};
  return {};
}

std::vector<std::string> Emulator::launch(const RotaSimtKernel &kernel,
                                          const Launch &launch) {
  if (auto errors = checkSizes(kernel, launch); !errors.empty())
    return errors;
  std::shared_lock lock(buffersMutex);
  int64_t blocks = launch.grid.count();
  OrderedOperation operation;
  if (launch.operation) {
    operation = *launch.operation;
  } else if (kernel.checked) {
    operations.watch();
    operation = operations.begin(ownLane);
    operations.name(operation, fmt::format("kernel '{}'", kernel.name));
  }
  // Blocks before the first with errors always run, so that all host threads
  // agree on the first.
  std::atomic<int64_t> firstFailed = blocks;
  std::vector<std::string> errors; // by block firstFailed; under `mutex`
  auto runBlocks = [&](int64_t begin, int64_t end) {
    std::unique_ptr<Block> block = takeBlock();
    block->startLaunch(operation, operations);
    for (int64_t number = begin; number < std::min<int64_t>(end, firstFailed);
         ++number) {
      std::vector<std::string> found = block->run(kernel, launch, number);
      if (found.empty())
        continue;
      std::lock_guard lock(mutex);
      if (number < firstFailed) {
        firstFailed = number;
        errors = std::move(found);
      }
    }
    if (launch.moved) {
      std::lock_guard lock(mutex);
      *launch.moved += block->getMovedBytes();
    }
    giveBack(std::move(block));
  };
  if (!launch.runPieces) {
    runBlocks(0, blocks);
    return errors;
  }
  int64_t pieces = std::min(blocks, kPieces);
  launch.runPieces(pieces, [&](int64_t piece) {
    runBlocks(blocks * piece / pieces, blocks * (piece + 1) / pieces);
  });
  return errors;
}

} // namespace rota::simt
