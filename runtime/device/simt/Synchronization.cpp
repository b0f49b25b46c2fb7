// SPDX-License-Identifier: Apache-2.0
//
// The operations for which threads wait: barriers, collectives of a warp,
// asynchronous copies, and products of warpgroups.
#include "runtime/device/simt/Block.h"

#include <bit>
#include <cstring>

namespace rota::simt {

void Block::barrier(uint32_t site) {
  const Thread *&first = atBarrier.first[running().warp];
  if (!first)
    first = &running();
  else if (first->waitSite != site)
    reportUnaligned(*first, site);
  atBarrier.waiting.push_back(scheduler.running());
  if (atBarrier.waiting.size() < threads.size())
    return suspend(site);
  if (memory.isChecked())
    memory.shadow().blockBarrier();
  for (uint32_t waiting : atBarrier.waiting)
    if (waiting != scheduler.running())
      wake(threads[waiting]);
  atBarrier.clear();
}

/// All lanes of a warp must come to a barrier at one instruction.
void Block::reportUnaligned(const Thread &first, uint32_t site) {
  reports.add(Fault::DivergentBarrier, running().number, site, first.waitSite,
              "thread {} of the same warp waits at {}", first.number,
              reports.place(first.waitSite));
}

Words Block::collective(WarpOperation operation, uint32_t mask, uint32_t site,
                        const Operands &operands) {
  Thread &self = running();
  mask &= liveLanes[self.warp];
  if (!(mask >> self.lane & 1)) {
    reports.add(Fault::InvalidOperand, self.number, site, 0,
                "expected lane {} in its own mask, got {:#010x}", self.lane,
                mask);
    stop();
  }
  if (operation.isAligned() && mask != kAllLanes) {
    reports.add(Fault::InvalidOperand, self.number, site, 0,
                "expected a whole warp, got one with the lanes {:#010x}", mask);
    stop();
  }
  auto group = pending.begin();
  while (group != pending.end() &&
         !(group->warp == self.warp && group->operation == operation &&
           group->mask == mask && !(group->arrived >> self.lane & 1)))
    ++group;
  if (group == pending.end()) {
    group = pending.emplace(pending.end());
    group->operation = operation;
    group->warp = self.warp;
    group->mask = mask;
    group->site = site;
  }
  if (operation.isAligned() && group->site != site)
    reports.add(Fault::DivergentCollective, self.number, site, group->site,
                "another lane of the same warp waits at {}",
                reports.place(group->site));
  group->operands[self.lane] = operands;
  group->arrived |= 1u << self.lane;
  if (group->arrived == mask) {
    finish(*group);
    if (group != pending.end() - 1)
      *group = pending.back();
    pending.pop_back();
  } else {
    suspend(site);
  }
  return self.result;
}

/// Computes the results, and wakes all lanes but the running one.
void Block::finish(PendingCollective &group) {
  if (memory.isChecked()) {
    if (group.operation.kind == WarpOperation::Kind::WarpBarrier)
      memory.shadow().warpBarrier(group.warp, group.mask);
    else
      memory.shadow().warpCollective(group.warp, group.mask);
    if (group.operation.kind == WarpOperation::Kind::LoadMatrix)
      readRows(group);
  }
  std::array<Words, kWarpSize> results{};
  std::string wrong = compute(group, results);
  if (!wrong.empty())
    reports.add(Fault::InvalidOperand, scheduler.running(), group.site, 0, "{}",
                wrong);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!(group.mask >> lane & 1))
      continue;
    Thread &thread = threads[group.warp * kWarpSize + lane];
    thread.result = results[lane];
    if (thread.number != scheduler.running())
      wake(thread);
  }
}

void Block::readRows(const PendingCollective &group) {
  constexpr uint32_t kRow = 16; // bytes
  for (uint32_t lane = 0; lane < 8 * group.operation.matrices; ++lane)
    if (!memory.read({group.operands[lane].row, kRow, kRow,
                      group.warp * kWarpSize + lane, group.site}))
      stop();
}

void Block::copy(const Copy &copy) {
  Thread &self = running();
  if (memory.isChecked()) {
    bool valid = memory.startCopy(
        {copy.to, copy.bytes, copy.bytes, self.number, copy.site});
    if (valid && copy.sourceBytes > 0)
      valid = memory.read(
          {copy.from, copy.sourceBytes, copy.bytes, self.number, copy.site});
    if (!valid)
      stop();
  }
  self.copies.push_back(copy);
  ++self.uncommitted;
}

void Block::commitCopies() {
  Thread &self = running();
  self.groups.push_back(self.uncommitted);
  self.uncommitted = 0;
}

void Block::waitForCopies(uint32_t groups) {
  Thread &self = running();
  while (self.groups.size() > groups) {
    auto end = self.copies.begin() + self.groups.front();
    for (auto copy = self.copies.begin(); copy != end; ++copy)
      land(self, *copy);
    self.copies.erase(self.copies.begin(), end);
    self.groups.erase(self.groups.begin());
  }
}

void Block::readForProduct(MemoryAccess access) {
  read(access);
  memory.startProductRead(access.address, access.bytes);
  running().products.addRead({access.address, access.bytes, access.site});
}

void Block::waitForProducts(uint32_t groups) {
  Thread &self = running();
  self.products.wait(groups);
  while (auto read = self.products.takeCompleteRead())
    memory.endProductRead(
        {read->address, read->bytes, 1, self.number, read->site});
}

void Block::takeSums(std::span<float> sums, bool mayBePending, uint32_t site) {
  Thread &self = running();
  uint32_t early = self.products.takeSums(sums);
  if (early != 0 && !mayBePending)
    reports.add(Fault::PendingProduct, self.number, site, early,
                "uses the sums of {} without a wait for them",
                reports.place(early));
}

void Block::land(Thread &thread, const Copy &copy) {
  std::memcpy(copy.to, copy.from, copy.sourceBytes);
  std::memset(copy.to + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
  if (memory.isChecked())
    memory.endCopy({copy.to, copy.bytes, copy.bytes, thread.number, copy.site});
}

} // namespace rota::simt
