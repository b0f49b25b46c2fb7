// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Snapshot.h"

namespace rota {

Snapshot::Snapshot(Rank &rank)
    : rank(rank), pieces(snapshotPieces(rank.program(), rank.stage())),
      memory(rank.device().makeArena(
          snapshotBytes(rank.program(), rank.stage()))) {}

void Snapshot::take() {
  ComputeToken token(rank.cores());
  for (const SnapshotPiece &piece : pieces)
    rank.device().copy(rank.context(), rank.at(piece.source),
                       memory->at(piece.offset), piece.bytes);
}

void Snapshot::restore() {
  ComputeToken token(rank.cores());
  for (const SnapshotPiece &piece : pieces)
    rank.device().copy(rank.context(), memory->at(piece.offset),
                       rank.at(piece.source), piece.bytes);
}

} // namespace rota
