// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/SharedShadow.h"

#include <algorithm>

namespace rota::simt {

static constexpr uint64_t kCellBytes = 2;
/// Times are 32 bits wide; a block needs far fewer than the rest.
static constexpr uint32_t kLastStart = 1u << 31;

static uint32_t warpOf(uint32_t thread) { return thread / kWarpSize; }

void SharedShadow::startBlock(uint64_t bytes,
                              const std::vector<uint32_t> &live) {
  size_t count = (bytes + kCellBytes - 1) / kCellBytes;
  if (now > kLastStart) {
    cells.clear();
    now = 0;
  }
  // A block that was stopped, or did not wait, leaves some.
  if (openReads > 0)
    cells.clear();
  openReads = 0;
  if (cells.size() < count)
    cells.resize(count);
  start = lastBlockBarrier = ++now;
  warps.assign(live.size(), Warp());
  for (size_t warp = 0; warp < live.size(); ++warp)
    warps[warp].live = live[warp];
}

bool SharedShadow::isOrdered(uint32_t time, uint32_t earlier,
                             uint32_t later) const {
  if (earlier == later || lastBlockBarrier > time)
    return true;
  const Warp &warp = warps[warpOf(later)];
  if (warpOf(earlier) != warpOf(later))
    return false;
  size_t pair = earlier % kWarpSize * kWarpSize + later % kWarpSize;
  return warp.barrier > time ||
         (!warp.pairBarrier.empty() && warp.pairBarrier[pair] > time);
}

bool SharedShadow::isWriteAfterReadOrdered(const Cell &cell,
                                           uint32_t thread) const {
  if (lastBlockBarrier > cell.readTime)
    return true;
  uint32_t own = warpOf(thread);
  if (cell.readerWarps & ~(1u << own))
    return false;
  const Warp &warp = warps[own];
  if (warp.barrier > cell.readTime || warp.collective > cell.readTime)
    return true;
  return !cell.severalReaders && isOrdered(cell.readTime, cell.reader, thread);
}

Conflict::Kind SharedShadow::conflictOfRead(const Cell &cell,
                                            uint32_t thread) const {
  if (!wasWritten(cell))
    return Conflict::Kind::Unwritten;
  if (cell.pending)
    return Conflict::Kind::Pending;
  return isOrdered(cell.writeTime, cell.writer, thread)
             ? Conflict::Kind::None
             : Conflict::Kind::ReadAfterWrite;
}

Conflict SharedShadow::conflictOfWrite(const Cell &cell, uint32_t thread,
                                       uint32_t site, WriteKind kind) const {
  if (cell.productReads > 0)
    return {Conflict::Kind::InProduct, 0, cell.reader, cell.readSite};
  Conflict conflict;
  conflict.thread = cell.writer;
  conflict.site = cell.writeSite;
  if (wasWritten(cell)) {
    bool same = kind == WriteKind::SameValue && cell.writeSite == site;
    if (cell.pending && kind != WriteKind::CopyEnd)
      conflict.kind = Conflict::Kind::Pending;
    else if (!same && !isOrdered(cell.writeTime, cell.writer, thread))
      conflict.kind = Conflict::Kind::WriteAfterWrite;
  }
  if (conflict.kind == Conflict::Kind::None && cell.readTime >= start &&
      !isWriteAfterReadOrdered(cell, thread))
    return {Conflict::Kind::WriteAfterRead, 0, cell.reader, cell.readSite};
  return conflict;
}

Conflict SharedShadow::read(uint64_t offset, uint64_t bytes, uint32_t thread,
                            uint32_t site) {
  Conflict first;
  for (uint64_t i = offset / kCellBytes; i <= (offset + bytes - 1) / kCellBytes;
       ++i) {
    Cell &cell = cells[i];
    if (first.kind == Conflict::Kind::None) {
      first.kind = conflictOfRead(cell, thread);
      if (first.kind != Conflict::Kind::None)
        first.byte = i * kCellBytes;
      if (first.kind > Conflict::Kind::Unwritten)
        first.thread = cell.writer, first.site = cell.writeSite;
    }
    if (cell.readTime < lastBlockBarrier) {
      cell.readerWarps = 0;
      cell.severalReaders = false;
    } else if (cell.readerWarps && cell.reader != thread) {
      cell.severalReaders = true;
    }
    cell.readerWarps |= 1u << warpOf(thread);
    cell.readTime = now;
    cell.readSite = site;
    cell.reader = thread;
  }
  return first;
}

Conflict SharedShadow::write(uint64_t offset, uint64_t bytes, uint32_t thread,
                             uint32_t site, WriteKind kind) {
  Conflict first;
  for (uint64_t i = offset / kCellBytes; i <= (offset + bytes - 1) / kCellBytes;
       ++i) {
    Cell &cell = cells[i];
    if (first.kind == Conflict::Kind::None) {
      first = conflictOfWrite(cell, thread, site, kind);
      first.byte = i * kCellBytes;
    }
    cell.writeTime = now;
    cell.writeSite = site;
    cell.writer = thread;
    cell.pending = kind == WriteKind::CopyStart;
  }
  return first;
}

void SharedShadow::startProductRead(uint64_t offset, uint64_t bytes) {
  for (uint64_t i = offset / kCellBytes; i <= (offset + bytes - 1) / kCellBytes;
       ++i, ++openReads)
    ++cells[i].productReads;
}

void SharedShadow::endProductRead(uint64_t offset, uint64_t bytes,
                                  uint32_t thread, uint32_t site) {
  for (uint64_t i = offset / kCellBytes; i <= (offset + bytes - 1) / kCellBytes;
       ++i, --openReads)
    --cells[i].productReads;
  read(offset, bytes, thread, site);
}

void SharedShadow::warpBarrier(uint32_t warpNumber, uint32_t mask) {
  Warp &warp = warps[warpNumber];
  ++now;
  if (mask == warp.live) {
    warp.barrier = now;
    return;
  }
  warp.pairBarrier.resize(kWarpSize * kWarpSize);
  for (uint32_t a = 0; a < kWarpSize; ++a)
    for (uint32_t b = 0; b < kWarpSize; ++b)
      if ((mask >> a & 1) && (mask >> b & 1))
        warp.pairBarrier[a * kWarpSize + b] = now;
}

void SharedShadow::warpCollective(uint32_t warpNumber, uint32_t mask) {
  ++now;
  if (mask == warps[warpNumber].live)
    warps[warpNumber].collective = now;
}

} // namespace rota::simt
