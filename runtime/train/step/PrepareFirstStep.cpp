// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/PrepareFirstStep.h"
#include "runtime/train/step/ActionWork.h"

#include <algorithm>
#include <set>

namespace rota {

static void populate(Rank &rank, const Arena &arena) {
  constexpr int64_t kPiece = int64_t(32) << 20; // some 5 ms
  int64_t pieces = (arena.bytes() + kPiece - 1) / kPiece;
  parallelPieces(rank.context(), pieces, [&](int64_t piece) {
    int64_t begin = piece * kPiece;
    arena.populate(begin, std::min(kPiece, arena.bytes() - begin));
  });
}

/// Runs each task of the stage's timeline in the frame of its first call.
static void runTasksOnce(Rank &rank, RotaContext *context) {
  const Stage &stage = rank.stage();
  std::set<int> done;
  for (int a = 0; a < static_cast<int>(stage.actions.size()); ++a)
    for (const Call &call : stage.templateOf(a).calls)
      if (done.insert(call.task).second)
        runCall(rank, context, call, stage.slotsOf(a),
                stage.actions[a].microbatch);
}

void prepareFirstStep(Rank &rank) {
  rank.setPosition("preparation");
  ComputeToken token(rank.cores());
  populate(rank, rank.arena());
  populate(rank, rank.hostArena());
  rank.device().prepareProducts(rank.context(), [&](RotaContext *context) {
    runTasksOnce(rank, context);
  });
}

} // namespace rota
