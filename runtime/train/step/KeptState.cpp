// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/KeptState.h"

namespace rota {

KeptState::KeptState(Rank &rank)
    : rank(rank), pieces(keptPieces(rank.program(), rank.stage())),
      memory(rank.device().makeArena(keptBytes(rank.program(), rank.stage()))) {
}

void KeptState::keep() {
  ComputeToken token(rank.cores());
  for (const KeptPiece &piece : pieces)
    rank.device().copy(rank.context(), rank.at(piece.source),
                       memory->at(piece.place), piece.bytes);
}

void KeptState::restore() {
  ComputeToken token(rank.cores());
  for (const KeptPiece &piece : pieces)
    rank.device().copy(rank.context(), memory->at(piece.place),
                       rank.at(piece.source), piece.bytes);
}

} // namespace rota
