// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/GlobalShadow.h"

#include <algorithm>
#include <sys/mman.h>

namespace rota::simt {

namespace {

template <typename T> T load(const T &place) {
  return __atomic_load_n(&place, __ATOMIC_RELAXED);
}

void store(uint64_t &place, uint64_t value) {
  __atomic_store_n(&place, value, __ATOMIC_RELAXED);
}

uint64_t pack(OperationId operation, uint32_t block) {
  return uint64_t(operation) << 32 | block;
}

OperationId operationOf(uint64_t word) { return word >> 32; }
uint32_t blockOf(uint64_t word) { return static_cast<uint32_t>(word); }

} // namespace

GlobalShadow::GlobalShadow(size_t bytes) : bytes(bytes) {
  void *pages = mmap(nullptr, mappedBytes(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages != MAP_FAILED)
    chunks = static_cast<Chunk *>(pages);
}

GlobalShadow::~GlobalShadow() {
  if (!chunks)
    return;
  for (Cell *parts : pieces)
    delete[] parts;
  munmap(chunks, mappedBytes());
}

/// The cells of the chunk's parts, which begin as the whole was.
GlobalShadow::Cell *GlobalShadow::split(Chunk &chunk) {
  auto *parts = new Cell[kParts];
  std::fill_n(parts, kParts,
              Cell{load(chunk.whole.write), load(chunk.whole.read)});
  Cell *expected = nullptr;
  if (__atomic_compare_exchange_n(&chunk.parts, &expected, parts, false,
                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    std::lock_guard lock(mutex);
    pieces.push_back(parts);
    return parts;
  }
  delete[] parts; // another thread was first
  return expected;
}

GlobalShadow::Found GlobalShadow::conflictWithWrite(
    const Cell &cell, const OrderedOperation &operation, uint32_t block) {
  uint64_t word = load(cell.write);
  OperationId writer = operationOf(word);
  if (word == 0 || word == pack(operation.id(), block))
    return std::nullopt;
  if (writer == operation.id())
    return GlobalConflict{0, 0, true, 0, blockOf(word)};
  if (operation.isAfter(writer))
    return std::nullopt;
  return GlobalConflict{0, 0, true, writer};
}

GlobalShadow::Found GlobalShadow::conflictWithReads(
    const Cell &cell, const OrderedOperation &operation, uint32_t block) {
  uint64_t word = load(cell.read);
  OperationId readers = operationOf(word);
  if (word == 0 || word == pack(operation.id(), block))
    return std::nullopt;
  if (!operation.isIn(readers)) {
    if (operation.isAfter(readers))
      return std::nullopt;
    return GlobalConflict{0, 0, false, readers};
  }
  if (blockOf(word) != block)
    return GlobalConflict{
        0, 0, false, 0, blockOf(word), blockOf(word) == kSeveral};
  if (operation.isAfterOthers(readers))
    return std::nullopt;
  return GlobalConflict{0, 0, false, readers};
}

GlobalShadow::Found GlobalShadow::read(Cell &cell,
                                       const OrderedOperation &operation,
                                       uint32_t block) {
  Found found = conflictWithWrite(cell, operation, block);
  uint64_t own = pack(operation.id(), block), word = load(cell.read);
  OperationId readers = operationOf(word);
  if (word == own || word == pack(operation.id(), kSeveral))
    return found;
  if (word != 0 && operation.isIn(readers)) {
    if (blockOf(word) != block)
      store(cell.read, pack(readers, kSeveral));
  } else if (word == 0 || operation.isAfter(readers)) {
    store(cell.read, own);
  } else {
    store(cell.read, pack(operation.joinedWith(readers), block));
  }
  return found;
}

/// Whoever comes after this write comes after the reads before it, too.
GlobalShadow::Found GlobalShadow::write(Cell &cell,
                                        const OrderedOperation &operation,
                                        uint32_t block) {
  Found found = conflictWithWrite(cell, operation, block);
  if (!found)
    found = conflictWithReads(cell, operation, block);
  store(cell.write, pack(operation.id(), block));
  if (load(cell.read) != 0)
    store(cell.read, 0);
  return found;
}

std::optional<GlobalConflict>
GlobalShadow::access(bool isWrite, uint64_t offset, uint64_t count,
                     const OrderedOperation &operation, uint32_t block) {
  Found first;
  if (!chunks)
    return first;
  auto note = [&](Cell &cell, uint64_t begin, uint64_t end) {
    Found found =
        isWrite ? write(cell, operation, block) : read(cell, operation, block);
    if (!found)
      return;
    if (!first) {
      first = found;
      first->begin = begin;
      first->end = end;
    } else if (first->end == begin && first->other == found->other &&
               first->otherBlock == found->otherBlock &&
               first->isWrite == found->isWrite) {
      first->end = end;
    }
  };
  uint64_t last = offset + count;
  for (uint64_t at = offset; at < last;) {
    uint64_t begin = at / kChunk * kChunk;
    uint64_t end = std::min(begin + kChunk, last);
    Chunk &chunk = chunks[at / kChunk];
    Cell *parts = __atomic_load_n(&chunk.parts, __ATOMIC_ACQUIRE);
    if (!parts && at == begin && end == std::min(begin + kChunk, bytes)) {
      note(chunk.whole, at, end);
    } else {
      if (!parts)
        parts = split(chunk);
      for (uint64_t part = (at - begin) / kPart;
           part <= (end - 1 - begin) / kPart; ++part)
        note(parts[part], std::max(at, begin + part * kPart),
             std::min(end, begin + (part + 1) * kPart));
    }
    at = end;
  }
  return first;
}

OperationId GlobalShadow::lastWrite(uint64_t offset) const {
  if (!chunks)
    return 0;
  const Chunk &chunk = chunks[offset / kChunk];
  const Cell *parts = __atomic_load_n(&chunk.parts, __ATOMIC_ACQUIRE);
  const Cell &cell = parts ? parts[offset % kChunk / kPart] : chunk.whole;
  return operationOf(load(cell.write));
}

} // namespace rota::simt
