// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/BlockMemory.h"

#include <cstring>
#include <sys/mman.h>

namespace rota::simt {

/// Addresses so near to shared memory count as outside of it, not as global.
static constexpr int64_t kMargin = 1 << 20;
static constexpr size_t kMapped = kMargin + kMaxSharedBytes + kMargin;

/// In the shared memory at the start of a block: NaN in every float type.
static constexpr int kPoison = 0xFF;

BlockMemory::BlockMemory(const Buffers &buffers, Reports &reports)
    : buffers(buffers), reports(reports) {}

BlockMemory::~BlockMemory() {
  if (mapped)
    munmap(mapped, kMapped);
}

bool BlockMemory::startBlock(uint64_t bytes, bool check,
                             const std::vector<uint32_t> &liveLanes) {
  if (!mapped) {
    void *pages = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
      return false;
    mapped = static_cast<char *>(pages);
    base = mapped + kMargin;
  }
  sharedBytes = bytes;
  checked = check;
  std::memset(base, kPoison, sharedBytes);
  if (checked)
    accesses.startBlock(sharedBytes, liveLanes);
  return true;
}

BlockMemory::Place BlockMemory::locate(const MemoryAccess &access) {
  const char *byte = static_cast<const char *>(access.address);
  uint64_t excess = reinterpret_cast<uintptr_t>(byte) & (access.alignment - 1);
  if (excess != 0) {
    reports.add(Fault::Misaligned, access.thread, access.site, 0,
                "expected an address that is a multiple of {}, got {} more",
                access.alignment, excess);
    return Place::Invalid;
  }
  if (byte < mapped || byte >= mapped + kMapped)
    return Place::Global;
  int64_t offset = byte - base;
  if (offset >= 0 && offset + access.bytes <= sharedBytes)
    return Place::Shared;
  reports.add(Fault::OutOfBounds, access.thread, access.site, 0,
              "{} bytes at byte {} of shared memory, which has {} bytes",
              access.bytes, offset, sharedBytes);
  return Place::Invalid;
}

/// The site of an unwritten byte is none: nothing to name.
void BlockMemory::report(const MemoryAccess &access, const Conflict &conflict) {
  using Kind = Conflict::Kind;
  auto add = [&](Fault fault, const char *before, const char *after) {
    reports.add(fault, access.thread, access.site, conflict.site,
                "{} byte {} of shared memory{} thread {} at {}", before,
                conflict.byte, after, conflict.thread,
                reports.place(conflict.site));
  };
  switch (conflict.kind) {
  case Kind::None:
    return;
  case Kind::Unwritten:
    return reports.add(Fault::Unwritten, access.thread, access.site, 0,
                       "reads byte {} of shared memory, which no thread of the "
                       "block wrote",
                       conflict.byte);
  case Kind::Pending:
    return add(Fault::PendingCopy, "accesses",
               ", the target of a copy that was not waited for, by");
  case Kind::InProduct:
    return add(Fault::PendingProduct, "writes",
               ", which a product that was not waited for reads, of");
  case Kind::ReadAfterWrite:
    return add(Fault::Race, "reads", ", without a barrier after the write of");
  case Kind::WriteAfterWrite:
    return add(Fault::Race, "writes", ", without a barrier after the write of");
  case Kind::WriteAfterRead:
    return add(Fault::Race, "writes", ", without a barrier after the read of");
  }
}

bool BlockMemory::read(const MemoryAccess &access) {
  Place place = locate(access);
  if (place == Place::Invalid)
    return false;
  if (place == Place::Shared) {
    Conflict conflict = accesses.read(offsetOf(access.address), access.bytes,
                                      access.thread, access.site);
    if (conflict.kind != Conflict::Kind::None)
      report(access, conflict);
    return true;
  }
  return accessGlobal(access, /*isWrite=*/false);
}

bool BlockMemory::write(const MemoryAccess &access, const void *value) {
  Place place = locate(access);
  if (place == Place::Invalid)
    return false;
  if (place == Place::Shared) {
    bool same = value && std::memcmp(access.address, value, access.bytes) == 0;
    Conflict conflict = accesses.write(offsetOf(access.address), access.bytes,
                                       access.thread, access.site,
                                       same ? SharedShadow::WriteKind::SameValue
                                            : SharedShadow::WriteKind::Plain);
    if (conflict.kind != Conflict::Kind::None)
      report(access, conflict);
    return true;
  }
  return accessGlobal(access, /*isWrite=*/true);
}

bool BlockMemory::accessGlobal(const MemoryAccess &access, bool isWrite) {
  (isWrite ? moved.written : moved.read) += access.bytes;
  if (buffers.isEmpty())
    return true;
  const char *verb = isWrite ? "writes" : "reads";
  const GlobalBuffer *buffer = buffers.find(access.address, access.bytes);
  if (!buffer) {
    reports.add(Fault::OutOfBounds, access.thread, access.site, 0, "{} {}",
                verb, buffers.describe(access.address, access.bytes));
    return false;
  }
  uint64_t offset = buffer->offsetOf(access.address);
  if (isWrite) {
    buffer->markWritten(offset, access.bytes);
  } else if (auto byte = buffer->findUnwritten(offset, access.bytes)) {
    reports.add(Fault::Unwritten, access.thread, access.site, 0,
                "reads byte {} of '{}', which was never written", *byte,
                buffer->name);
    return false;
  }
  if (operation.id() == 0)
    return true;
  auto conflict =
      buffer->shadow->access(isWrite, offset, access.bytes, operation, block);
  if (!conflict)
    return true;
  if (conflict->other == 0)
    reports.add(Fault::Race, access.thread, access.site, 0, "{} {}", verb,
                describe(*conflict, *buffer, *order));
  else
    reports.add(Fault::Unordered, access.thread, access.site, 0, "on {}, {} {}",
                order->laneOf(operation.id()), verb,
                describe(*conflict, *buffer, *order));
  return true;
}

bool BlockMemory::startCopy(const MemoryAccess &access) {
  Place place = locate(access);
  if (place == Place::Invalid)
    return false;
  if (place == Place::Global) {
    reports.add(Fault::OutOfBounds, access.thread, access.site, 0,
                "expected the target of a copy in shared memory");
    return false;
  }
  Conflict conflict =
      accesses.write(offsetOf(access.address), access.bytes, access.thread,
                     access.site, SharedShadow::WriteKind::CopyStart);
  if (conflict.kind != Conflict::Kind::None)
    report(access, conflict);
  return true;
}

void BlockMemory::startProductRead(const void *address, uint64_t bytes) {
  accesses.startProductRead(offsetOf(address), bytes);
}

void BlockMemory::endProductRead(const MemoryAccess &access) {
  accesses.endProductRead(offsetOf(access.address), access.bytes, access.thread,
                          access.site);
}

void BlockMemory::endCopy(const MemoryAccess &access) {
  Conflict conflict =
      accesses.write(offsetOf(access.address), access.bytes, access.thread,
                     access.site, SharedShadow::WriteKind::CopyEnd);
  if (conflict.kind != Conflict::Kind::None)
    report(access, conflict);
}

} // namespace rota::simt
