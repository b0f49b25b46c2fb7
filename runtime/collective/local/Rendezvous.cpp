// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/local/Rendezvous.h"

namespace rota {

/// Bytes of a piece: copying one takes much longer than a lock, and delays a
/// later message only a little.
static constexpr int64_t kPieceBytes = 1 << 19;

static int phasesOf(const Collective &collective) {
  return collective.kind == Collective::Kind::AllReduce ? 2 : 1;
}

Rendezvous::Rendezvous(const Exchange &exchange)
    : Exchange(exchange), members(size()), phasesLeft(phasesOf(collective)) {}

bool Rendezvous::arrive(int index, const void *source, void *destination) {
  Member &member = members[index];
  member.arrived = true;
  member.source = source;
  member.destination = destination;
  if (++arrivals < int(size()))
    return false;
  beginPhase();
  return true;
}

int64_t Rendezvous::bytes() const {
  int64_t elements = collective.outer * collective.size * collective.inner;
  return elements * elementBytes * (isMessage ? 1 : int64_t(size()));
}

TransferBlock Rendezvous::block(int from, int to) const {
  if (isMessage) {
    bool travels = from == 0 && to + 1 == int(size());
    TransferRows whole = {0, 1, collective.size, 0};
    return travels ? TransferBlock{whole, whole} : TransferBlock();
  }
  return phasesLeft == 1 && phasesOf(collective) == 2
             ? spreadBlock(collective, group, from, to)
             : blockOf(collective, group, from, to);
}

int64_t Rendezvous::piecesOf(int64_t elements) const {
  return (elements * elementBytes + kPieceBytes - 1) / kPieceBytes;
}

/// True in the phase in which members combine the elements that they read.
static bool combines(const Collective &collective, int phasesLeft) {
  return reduces(collective.kind) && phasesLeft == phasesOf(collective);
}

void Rendezvous::beginPhase() {
  unfinished = 0;
  for (int to = 0; to < int(size()); ++to) {
    Member &member = members[to];
    member.pieces = member.claimed = member.finished = 0;
    if (isIdle(to))
      continue;
    bool isSum = combines(collective, phasesLeft);
    int first = isSum ? to : 0, end = isSum ? to + 1 : int(size());
    int64_t elements = 0;
    for (int from = first; from < end; ++from) {
      elements += block(from, to).count();
      member.pieces += piecesOf(block(from, to).count());
    }
    // An empty piece keeps the order where a member has no elements.
    member.pieces = std::max<int64_t>(member.pieces, 1);
    member.perClaim = std::max<int64_t>(
        1, member.pieces / std::max<int64_t>(1, piecesOf(elements)));
    unfinished += member.pieces;
  }
}

std::optional<Rendezvous::Pieces> Rendezvous::claim(int index) {
  Member &member = members[index];
  if (member.claimed == member.pieces)
    return std::nullopt;
  int64_t begin = member.claimed;
  member.claimed = std::min(member.pieces, begin + member.perClaim);
  return Pieces{begin, member.claimed};
}

bool Rendezvous::finish(int index, Pieces pieces) {
  members[index].finished += pieces.end - pieces.begin;
  unfinished -= pieces.end - pieces.begin;
  if (unfinished > 0)
    return false;
  if (--phasesLeft > 0)
    beginPhase();
  return true;
}

void Rendezvous::takeAll() {
  while (!isComplete())
    for (int index = 0; index < int(size()); ++index)
      while (std::optional<Pieces> pieces = claim(index)) {
        take(index, *pieces);
        finish(index, *pieces);
      }
}

void Rendezvous::take(int index, Pieces pieces) const {
  if (!isMessage && pieces.begin == 0)
    clearElements(paddingOf(collective, group, index), elementBytes,
                  members[index].destination);
  for (int64_t piece = pieces.begin; piece < pieces.end; ++piece)
    if (combines(collective, phasesLeft))
      reduce(index, piece);
    else
      copy(index, piece);
}

void Rendezvous::reduce(int index, int64_t piece) const {
  TransferBlock own = block(index, index);
  int64_t length = kPieceBytes / elementBytes, begin = piece * length;
  char *destination = static_cast<char *>(members[index].destination);
  std::vector<const void *> terms(size());
  forEachStretch(own, begin, std::min(own.count(), begin + length),
                 [&](int64_t from, int64_t to, int64_t count) {
                   for (size_t i = 0; i < size(); ++i)
                     terms[i] = static_cast<const char *>(members[i].source) +
                                from * elementBytes;
                   combine(collective, terms, destination + to * elementBytes,
                           count);
                 });
}

void Rendezvous::copy(int index, int64_t piece) const {
  int64_t length = kPieceBytes / elementBytes;
  bool spreads = phasesOf(collective) == 2;
  for (int from = 0; from < int(size()); ++from) {
    TransferBlock taken = block(from, index);
    int64_t pieces = piecesOf(taken.count());
    if (piece >= pieces) {
      piece -= pieces;
      continue;
    }
    const void *source =
        spreads ? members[from].destination : members[from].source;
    return copyElements(taken, piece * length,
                        std::min(taken.count(), (piece + 1) * length),
                        elementBytes, source, members[index].destination);
  }
}

} // namespace rota
