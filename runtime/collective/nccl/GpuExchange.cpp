// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/GpuExchange.h"
#include "runtime/Error.h"
#include "runtime/collective/gpu/RowKernels.h"

#include <fmt/format.h>

namespace rota {

static constexpr int64_t kAlignment = 256; // bytes, of slots

static int64_t alignedUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A buffer that holds `count` elements one after the other.
static TransferRows packedRows(int64_t count) { return {0, 1, count, count}; }

/// Elements [begin, end) of the rows: the rest of a row, whole rows, and the
/// begin of a row, where there are any.
static std::vector<TransferRows> rectangles(const TransferRows &rows,
                                            int64_t begin, int64_t end) {
  if (rows.isContiguous())
    return {{rows.offset + begin, 1, end - begin, end - begin}};
  std::vector<TransferRows> result;
  while (begin < end) {
    int64_t row = begin / rows.length, at = begin % rows.length;
    int64_t whole = at ? 0 : (end - begin) / rows.length;
    int64_t length =
        whole ? rows.length : std::min(end - begin, rows.length - at);
    result.push_back({rows.offset + row * rows.stride + at,
                      std::max<int64_t>(whole, 1), length, rows.stride});
    begin += result.back().count();
  }
  return result;
}

GpuExchange::GpuExchange(cuda::CudaDevice &device, const NcclApi &nccl,
                         NcclHandle handle, cuda::StreamHandle stream,
                         int members, Workspace workspace)
    : device(device), nccl(nccl), handle(handle), stream(stream),
      members(members), zeros(workspace.zeros), terms(workspace.base) {
  int64_t termBytes = alignedUp(members * int64_t(sizeof(cuda::Term)));
  slots = workspace.base + termBytes;
  slotBytes =
      (workspace.bytes - termBytes) / (2 * members) / kAlignment * kAlignment;
  if (slotBytes < kAlignment)
    throw InputError(fmt::format(
        "expected a workspace of at least {} bytes for each group of {} ranks, "
        "got {}",
        termBytes + 2 * members * kAlignment, members, workspace.bytes));
  std::vector<cuda::Term> places;
  for (int member = 0; member < members; ++member)
    places.push_back({receiveSlot(member), 0});
  device.write(places.data(), terms, members * int64_t(sizeof(cuda::Term)));
}

void GpuExchange::run(const Collective &collective, const RankGroup &group,
                      const void *source, void *destination) {
  bool isContiguous = collective.outer == 1 && collective.splitOuter == 1;
  Work work = {collective,
               group.index,
               byteSize(collective.type),
               isContiguous && !reduces(collective.kind),
               static_cast<const char *>(source),
               static_cast<char *>(destination)};
  fillPadding(work, group);
  if (reduces(collective.kind))
    reduce(work, [&](int from, int to) {
      return blockOf(collective, group, from, to);
    });
  else if (!gatherDirectly(work))
    exchange(work, [&](int from, int to) {
      return blockOf(collective, group, from, to);
    });
  if (collective.kind == Collective::Kind::AllReduce) {
    work.source = work.destination;
    work.isWhole = isContiguous;
    exchange(work, [&](int from, int to) {
      return spreadBlock(collective, group, from, to);
    });
  }
}

void GpuExchange::copy(const void *source, void *destination, int64_t bytes) {
  if (bytes > 0 && source != destination)
    device.gpu().check(
        device.gpu().api().copy(reinterpret_cast<cuda::Address>(destination),
                                reinterpret_cast<cuda::Address>(source),
                                static_cast<size_t>(bytes), stream),
        "copy");
}

void GpuExchange::fillPadding(const Work &work, const RankGroup &group) {
  TransferRows rows = paddingOf(work.collective, group, work.self);
  // One element, which is read again for each that is written.
  if (rows.count() > 0)
    copyRows(work.elementBytes, {0, rows.count(), 1, 0},
             static_cast<const char *>(zeros), rows, work.destination);
}

/// Equal contiguous parts need no workspace.
bool GpuExchange::gatherDirectly(const Work &work) {
  const Collective &c = work.collective;
  if (c.kind != Collective::Kind::AllGather || c.outer != 1 ||
      c.size % members != 0 || !handle)
    return false;
  int64_t bytes = c.size / members * c.inner * work.elementBytes;
  nccl.check(nccl.allGather(work.source, work.destination,
                            static_cast<size_t>(bytes), kNcclBytes, handle,
                            stream),
             "all-gather");
  return true;
}

/// A piece is whole rows or a part of one row, where both ends have the same
/// rows.
static int64_t piecesOfRow(const TransferBlock &block, int64_t most) {
  bool sameRows = block.source.length == block.destination.length;
  return sameRows ? (block.source.length + most - 1) / most : 1;
}

int64_t GpuExchange::piecesOf(const Work &work,
                              const TransferBlock &block) const {
  int64_t count = block.count(), most = pieceElements(work);
  if (count == 0)
    return 0;
  if (work.isWhole)
    return 1;
  if (int64_t parts = piecesOfRow(block, most); parts > 1)
    return block.source.rows * parts;
  if (block.source.length == block.destination.length)
    most = most / block.source.length * block.source.length;
  return (count + most - 1) / most;
}

std::pair<int64_t, int64_t> GpuExchange::piece(const Work &work,
                                               const TransferBlock &block,
                                               int64_t number) const {
  int64_t count = block.count(), most = pieceElements(work),
          length = block.source.length;
  if (work.isWhole)
    return {0, count};
  if (int64_t parts = piecesOfRow(block, most); parts > 1) {
    int64_t row = number / parts * length, at = number % parts * most;
    return {row + at, row + std::min(length, at + most)};
  }
  if (length == block.destination.length)
    most = most / length * length;
  return {number * most, std::min(count, (number + 1) * most)};
}

int64_t GpuExchange::rounds(const Work &work, const BlockOf &block) const {
  int64_t result = 0;
  for (int member = 0; member < members; ++member)
    if (member != work.self)
      result = std::max({result, piecesOf(work, block(work.self, member)),
                         piecesOf(work, block(member, work.self))});
  return result;
}

/// Copies between blocks. This rank's own one needs no pieces.
void GpuExchange::exchange(const Work &work, const BlockOf &block) {
  if (TransferBlock own = block(work.self, work.self); own.count() > 0)
    copyRows(work.elementBytes, own.source, work.source, own.destination,
             work.destination);
  for (int64_t round = 0, last = rounds(work, block); round < last; ++round) {
    std::vector<Part> sends, receives;
    for (int member = 0; member < members; ++member) {
      if (member == work.self)
        continue;
      addSend(work, block(work.self, member), member, round, sends);
      addReceive(work, block(member, work.self), member, round, receives);
    }
    trade(sends, receives);
    for (const Part &part : receives)
      if (part.data == receiveSlot(part.member))
        unpack(work, part);
  }
}

/// Each member sums its own block. The members' terms lie in the receive slots.
void GpuExchange::reduce(const Work &work, const BlockOf &block) {
  TransferBlock own = block(work.self, work.self);
  int64_t ownPieces = piecesOf(work, own);
  int64_t last = std::max(ownPieces, rounds(work, block));
  for (int64_t round = 0; round < last; ++round) {
    auto [begin, end] = round < ownPieces ? piece(work, own, round)
                                          : std::pair<int64_t, int64_t>();
    int64_t bytes = (end - begin) * work.elementBytes;
    std::vector<Part> sends, receives;
    for (int member = 0; member < members; ++member) {
      if (member == work.self)
        continue;
      addSend(work, block(work.self, member), member, round, sends);
      if (bytes > 0)
        receives.push_back({member, receiveSlot(member), bytes});
    }
    trade(sends, receives);
    if (bytes == 0)
      continue;
    char *slot = receiveSlot(work.self);
    copy(pack(work, own.source, begin, end, slot), slot, bytes);
    // One rectangle, since pieces are whole rows or parts of one.
    combinePiece(work, rectangles(own.destination, begin, end).front());
  }
}

void GpuExchange::addSend(const Work &work, const TransferBlock &block,
                          int member, int64_t round, std::vector<Part> &sends) {
  if (round >= piecesOf(work, block))
    return;
  auto [begin, end] = piece(work, block, round);
  const char *data = pack(work, block.source, begin, end, sendSlot(member));
  sends.push_back(
      {member, const_cast<char *>(data), (end - begin) * work.elementBytes});
}

void GpuExchange::addReceive(const Work &work, const TransferBlock &block,
                             int member, int64_t round,
                             std::vector<Part> &receives) {
  if (round >= piecesOf(work, block))
    return;
  auto [begin, end] = piece(work, block, round);
  Part part = {member, receiveSlot(member), (end - begin) * work.elementBytes,
               rectangles(block.destination, begin, end)};
  if (part.places.size() == 1 && part.places[0].isContiguous())
    part.data = work.destination + part.places[0].offset * work.elementBytes;
  receives.push_back(std::move(part));
}

/// All sends and receives of a group run at once, so their order is free.
void GpuExchange::trade(const std::vector<Part> &sends,
                        const std::vector<Part> &receives) {
  if (sends.empty() && receives.empty())
    return;
  nccl.check(nccl.beginGroup(), "begin of a group");
  for (const Part &part : sends)
    nccl.check(nccl.send(part.data, static_cast<size_t>(part.bytes), kNcclBytes,
                         part.member, handle, stream),
               "send");
  for (const Part &part : receives)
    nccl.check(nccl.receive(part.data, static_cast<size_t>(part.bytes),
                            kNcclBytes, part.member, handle, stream),
               "receive");
  nccl.check(nccl.endGroup(), "exchange of blocks");
}

void GpuExchange::unpack(const Work &work, const Part &part) {
  const char *packed = part.data;
  for (const TransferRows &place : part.places) {
    copyRows(work.elementBytes, packedRows(place.count()), packed, place,
             work.destination);
    packed += place.count() * work.elementBytes;
  }
}

void GpuExchange::combinePiece(const Work &work, const TransferRows &out) {
  const Collective &c = work.collective;
  int32_t mode = combineModeOf(c);
  void *place = work.destination + out.offset * work.elementBytes;
  int64_t termCount = members, count = out.count(), length = out.length,
          stride = out.stride;
  void *table = terms;
  void *arguments[] = {&table, &termCount, &place,  &count,
                       &count, &length,    &stride, &mode};
  device.launchService(cuda::kCombineKernels[int(c.type)], count, arguments,
                       stream);
}

/// The elements [begin, end) of this rank's source one after the other: where
/// they are, or else in the slot.
const char *GpuExchange::pack(const Work &work, const TransferRows &rows,
                              int64_t begin, int64_t end, char *slot) {
  std::vector<TransferRows> places = rectangles(rows, begin, end);
  if (places.size() == 1 && places[0].isContiguous())
    return work.source + places[0].offset * work.elementBytes;
  char *packed = slot;
  for (const TransferRows &place : places) {
    copyRows(work.elementBytes, place, work.source, packedRows(place.count()),
             packed);
    packed += place.count() * work.elementBytes;
  }
  return slot;
}

void GpuExchange::copyRows(int64_t elementBytes, const TransferRows &sourceRows,
                           const char *source,
                           const TransferRows &destinationRows,
                           char *destination) {
  if (sourceRows.isContiguous() && destinationRows.isContiguous())
    return copy(source + sourceRows.offset * elementBytes,
                destination + destinationRows.offset * elementBytes,
                destinationRows.count() * elementBytes);
  rota::copyRows(device, {sourceRows, destinationRows}, elementBytes, source,
                 destination, stream);
}

} // namespace rota
