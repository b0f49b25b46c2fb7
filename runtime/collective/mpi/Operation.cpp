// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/mpi/Operation.h"

#include <cstring>
#include <fmt/format.h>

namespace rota {

static constexpr int64_t kPieceBytes = 1 << 20;
/// Largest number of pieces of a flow under way at once.
static constexpr int64_t kWindow = 4;
/// An AllReduce of at most so many bytes takes one exchange in place of two.
static constexpr int64_t kSmallBytes = 1 << 15;

/// The offset of elements [begin, end) of the rows where they are contiguous.
static std::optional<int64_t> stretchOf(const TransferRows &rows, int64_t begin,
                                        int64_t end) {
  if (rows.length == rows.stride || rows.rows == 1)
    return rows.offset + begin;
  if (begin / rows.length != (end - 1) / rows.length)
    return std::nullopt;
  return rows.offset + begin / rows.length * rows.stride + begin % rows.length;
}

/// A buffer that holds `count` elements one after the other.
static TransferRows packedRows(int64_t count) { return {0, 1, count, count}; }

/// The rows' elements [begin, end) alone, counted from zero.
static void pack(const TransferRows &rows, int64_t begin, int64_t end,
                 int64_t elementBytes, const char *buffer, char *packed) {
  copyElements({rows, packedRows(rows.count())}, begin, end, elementBytes,
               buffer, packed - begin * elementBytes);
}

static void unpack(const TransferRows &rows, int64_t begin, int64_t end,
                   int64_t elementBytes, const char *packed, char *buffer) {
  copyElements({packedRows(rows.count()), rows}, begin, end, elementBytes,
               packed - begin * elementBytes, buffer);
}

Operation::Operation(const Collective &collective, const RankGroup &group,
                     const void *source, void *destination)
    : collective(collective), group(group),
      elementBytes(byteSize(collective.type)),
      source(static_cast<const char *>(source)),
      destination(static_cast<char *>(destination)) {
  clearElements(paddingOf(collective, group, group.index), elementBytes,
                destination);
  if (reduces(collective.kind))
    beginReduction();
  else
    beginCopies(false);
}

Operation::Operation(int peer, const void *source, void *destination,
                     int64_t bytes)
    : isMessage(true) {
  collective.size = bytes;
  group.ranks = {peer};
  addFlow(0, source != nullptr, packedRows(bytes),
          source ? source : destination);
}

int64_t Operation::piecesOf(int64_t elements) const {
  return (elements * elementBytes + kPieceBytes - 1) / kPieceBytes;
}

void Operation::addFlow(int member, bool isSend, const TransferRows &rows,
                        const void *buffer) {
  Flow flow;
  flow.peer = group.ranks[member];
  flow.isSend = isSend;
  flow.rows = rows;
  flow.buffer = static_cast<char *>(const_cast<void *>(buffer));
  flow.pieces = piecesOf(rows.count());
  flows.push_back(std::move(flow));
}

TransferBlock Operation::blockTo(int from, int to) const {
  TransferRows whole = packedRows(collective.size);
  return isWhole ? TransferBlock{whole, whole}
                 : blockOf(collective, group, from, to);
}

/// This rank sums its own block; terms arrive from all other ranks.
void Operation::beginReduction() {
  int members = static_cast<int>(group.ranks.size()), self = group.index;
  bool isAllReduce = collective.kind == Collective::Kind::AllReduce;
  isWhole = isAllReduce && collective.size * elementBytes <= kSmallBytes;
  spreadLater = isAllReduce && !isWhole;
  sums = true;
  own = blockTo(self, self);
  ownPieces = piecesOf(own.count());
  for (int step = 1; step < members; ++step) {
    int to = (self + step) % members, from = (self - step + members) % members;
    addFlow(to, true, blockTo(self, to).source, source);
    addFlow(from, false, own.source, nullptr);
    flows.back().slots.resize(std::min(kWindow, ownPieces));
    arrived.resize(flows.size());
    arrived.back().resize(ownPieces);
  }
}

void Operation::beginCopies(bool spreads) {
  int members = static_cast<int>(group.ranks.size()), self = group.index;
  auto block = [&](int from, int to) {
    return spreads ? spreadBlock(collective, group, from, to)
                   : blockOf(collective, group, from, to);
  };
  flows.clear();
  sums = spreadLater = false;
  own = block(self, self);
  ownPieces = piecesOf(own.count());
  ownFinished = 0;
  for (int step = 1; step < members; ++step) {
    int to = (self + step) % members, from = (self - step + members) % members;
    addFlow(to, true, block(self, to).source, spreads ? destination : source);
    addFlow(from, false, block(from, self).destination, destination);
  }
}

bool Operation::canPost(const Flow &flow) const {
  if (flow.posted == flow.pieces)
    return false;
  // A slot is free once its piece was summed.
  if (sums && !flow.isSend)
    return flow.posted < ownFinished + kWindow;
  return flow.posted < flow.finished + kWindow;
}

std::optional<Piece> Operation::next() {
  for (size_t asked = 0; asked < flows.size(); ++asked) {
    size_t index = (turn + asked) % flows.size();
    Flow &flow = flows[index];
    if (!canPost(flow))
      continue;
    turn = index + 1;
    Piece piece;
    piece.peer = flow.peer;
    piece.isSend = flow.isSend;
    piece.flow = index;
    piece.number = flow.posted++;
    int64_t length = kPieceBytes / elementBytes;
    int64_t begin = piece.number * length;
    int64_t end = std::min(flow.rows.count(), begin + length);
    piece.bytes = (end - begin) * elementBytes;
    if (sums && !flow.isSend) {
      auto &slot = flow.slots[piece.number % kWindow];
      if (!slot)
        slot = std::make_unique_for_overwrite<char[]>(
            std::min(kPieceBytes, flow.rows.count() * elementBytes));
      piece.data = slot.get();
      return piece;
    }
    std::optional<int64_t> stretch = stretchOf(flow.rows, begin, end);
    // A small sum may overwrite its source while that is still being sent.
    if (stretch && !(isWhole && flow.isSend)) {
      piece.data = flow.buffer + *stretch * elementBytes;
      return piece;
    }
    piece.packed = std::make_unique_for_overwrite<char[]>(piece.bytes);
    piece.data = piece.packed.get();
    if (flow.isSend)
      pack(flow.rows, begin, end, elementBytes, flow.buffer, piece.data);
    return piece;
  }
  return std::nullopt;
}

void Operation::finish(Piece piece) {
  Flow &flow = flows[piece.flow];
  ++flow.finished;
  if (flow.isSend)
    return;
  if (sums) {
    arrived[piece.flow][piece.number] = 1;
    return;
  }
  if (piece.packed) {
    int64_t begin = piece.number * (kPieceBytes / elementBytes);
    unpack(flow.rows, begin, begin + piece.bytes / elementBytes, elementBytes,
           piece.data, flow.buffer);
  }
}

bool Operation::hasTerms(int64_t piece) const {
  for (size_t i = 0; i < flows.size(); ++i)
    if (!flows[i].isSend && !arrived[i][piece])
      return false;
  return true;
}

/// Adds a piece of all members' terms, in the group's order.
void Operation::sumPiece(int64_t piece) {
  std::vector<const char *> packed(group.ranks.size());
  for (const Flow &flow : flows)
    if (!flow.isSend)
      for (size_t member = 0; member < group.ranks.size(); ++member)
        if (group.ranks[member] == flow.peer)
          packed[member] = flow.slots[piece % kWindow].get();
  int64_t length = kPieceBytes / elementBytes, done = 0;
  int64_t begin = piece * length, end = std::min(own.count(), begin + length);
  std::vector<const void *> terms(group.ranks.size());
  forEachStretch(own, begin, end, [&](int64_t from, int64_t to, int64_t count) {
    for (size_t member = 0; member < terms.size(); ++member)
      terms[member] = packed[member] ? packed[member] + done * elementBytes
                                     : source + from * elementBytes;
    combine(collective, terms, destination + to * elementBytes, count);
    done += count;
  });
}

bool Operation::work(bool isFirst) {
  if (ownFinished < ownPieces) {
    int64_t length = kPieceBytes / elementBytes, begin = ownFinished * length;
    if (sums) {
      if ((collective.accumulate && !isFirst) || !hasTerms(ownFinished))
        return false;
      sumPiece(ownFinished);
    } else {
      copyElements(own, begin, std::min(own.count(), begin + length),
                   elementBytes, source, destination);
    }
    ++ownFinished;
    return true;
  }
  if (!spreadLater)
    return false;
  for (const Flow &flow : flows)
    if (flow.finished < flow.pieces)
      return false;
  beginCopies(true);
  return true;
}

bool Operation::isComplete() const {
  if (spreadLater || ownFinished < ownPieces)
    return false;
  for (const Flow &flow : flows)
    if (flow.finished < flow.pieces)
      return false;
  return true;
}

std::string Operation::describe() const {
  if (isMessage)
    return fmt::format("a message of {} bytes", collective.size);
  return rota::describe(collective);
}

} // namespace rota
