// SPDX-License-Identifier: Apache-2.0
//
// The life of a block: its threads start, wait for each other, and end.
#include "runtime/device/simt/Block.h"

#include <algorithm>

namespace rota::simt {

static thread_local Block *currentBlock = nullptr;

Block &Block::current() { return *currentBlock; }

Block::Block(const Buffers &buffers)
    : memory(buffers, reports), scheduler(runThread, this) {}

std::vector<std::string> Block::run(const RotaSimtKernel &kernel,
                                    const Launch &launch, uint64_t number) {
  this->kernel = &kernel;
  this->launch = &launch;
  index = {static_cast<uint32_t>(number % launch.grid.x),
           static_cast<uint32_t>(number / launch.grid.x % launch.grid.y),
           static_cast<uint32_t>(number / launch.grid.x / launch.grid.y)};
  reports.startBlock(&kernel, index, launch.maxReports);
  startThreads();
  std::optional<uint64_t> seed = launch.seed;
  if (seed)
    *seed += number * 0x9E3779B97F4A7C15ull; // another order in each block
  currentBlock = this;
  memory.setBlock(static_cast<uint32_t>(number));
  if (!memory.startBlock(kernel.sharedBytes + launch.sharedBytes,
                         kernel.checked, liveLanes) ||
      !scheduler.run(threads.size(), seed))
    return {fmt::format("kernel '{}': no memory to emulate a block of {} "
                        "threads",
                        kernel.name, threads.size())};
  currentBlock = nullptr;
  if (!stopped)
    reportStuck();
  return reports.take();
}

void Block::startThreads() {
  uint32_t count = launch->block.count();
  threads.resize(count);
  liveLanes.assign((count + kWarpSize - 1) / kWarpSize, 0);
  for (uint32_t number = 0; number < count; ++number) {
    Thread &thread = threads[number];
    thread.number = number;
    thread.lane = number % kWarpSize;
    thread.warp = number / kWarpSize;
    thread.index = {number % launch->block.x,
                    number / launch->block.x % launch->block.y,
                    number / launch->block.x / launch->block.y};
    thread.ended = false;
    thread.waitSite = 0;
    thread.copies.clear();
    thread.groups.clear();
    thread.uncommitted = 0;
    thread.products.clear();
    liveLanes[thread.warp] |= 1u << thread.lane;
  }
  atBarrier.clear();
  pending.clear();
  stopped = false;
}

void Block::runThread(void *block) {
  Block &self = *static_cast<Block *>(block);
  self.kernel->entry(self.launch->arguments);
  Thread &thread = self.running();
  if (!thread.copies.empty())
    self.reports.add(Fault::PendingCopy, thread.number,
                     thread.copies.front().site, 0,
                     "the thread ends without a wait for this copy");
  if (auto read = thread.products.firstRead())
    self.reports.add(Fault::PendingProduct, thread.number, read->site, 0,
                     "the thread ends without a wait for this product");
  thread.ended = true;
  self.scheduler.suspend();
}

void Block::suspend(uint32_t site) {
  running().waitSite = site;
  scheduler.suspend();
}

void Block::wake(Thread &thread) {
  thread.waitSite = 0;
  scheduler.wake(thread.number);
}

void Block::stop() {
  stopped = true;
  scheduler.stop();
}

void Block::read(MemoryAccess access) {
  access.thread = scheduler.running();
  if (!scheduler.isOnStackOfRunning(access.address) && !memory.read(access))
    stop();
}

void Block::write(MemoryAccess access, const void *value) {
  access.thread = scheduler.running();
  if (!scheduler.isOnStackOfRunning(access.address) &&
      !memory.write(access, value))
    stop();
}

/// No thread can go on. If not all have ended, a thread is reported that waits
/// while one of its warp is elsewhere, or the first that waits.
void Block::reportStuck() {
  auto isStuck = [](const Thread &thread) { return !thread.ended; };
  auto first = std::find_if(threads.begin(), threads.end(), isStuck);
  if (first == threads.end())
    return;
  for (auto thread = first; thread != threads.end(); ++thread) {
    const Thread &leader = threads[thread->warp * kWarpSize];
    if (thread->waitSite != leader.waitSite)
      return thread->ended ? reportDivergence(leader, *thread)
                           : reportDivergence(*thread, leader);
  }
  auto elsewhere =
      std::find_if(threads.begin(), threads.end(), [&](const Thread &thread) {
        return thread.waitSite != first->waitSite;
      });
  std::string other;
  if (elsewhere != threads.end())
    other = fmt::format("; thread {} {}", elsewhere->number, where(*elsewhere));
  reports.add(Fault::Deadlock, first->number, first->waitSite, 0,
              "{} of {} threads wait for ever{}",
              std::count_if(first, threads.end(), isStuck), threads.size(),
              other);
}

void Block::reportDivergence(const Thread &stuck, const Thread &other) {
  bool barrier = waitsAtBarrier(stuck) || waitsAtBarrier(other);
  reports.add(barrier ? Fault::DivergentBarrier : Fault::DivergentCollective,
              stuck.number, stuck.waitSite, other.waitSite,
              "waits for ever: thread {} of the same warp {}", other.number,
              where(other));
}

std::string Block::where(const Thread &thread) const {
  return thread.ended
             ? "has ended"
             : std::string("waits at ") + reports.place(thread.waitSite);
}

bool Block::waitsAtBarrier(const Thread &thread) const {
  return std::find(atBarrier.waiting.begin(), atBarrier.waiting.end(),
                   thread.number) != atBarrier.waiting.end();
}

} // namespace rota::simt
