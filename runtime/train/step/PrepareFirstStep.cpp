// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/PrepareFirstStep.h"
#include "runtime/program/UpdatePlaces.h"
#include "runtime/train/step/ActionWork.h"
#include "runtime/train/step/UpdateTask.h"

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

/// Runs each task of the stage's timeline in the frame of its first call, and
/// those of a step's end for each tensor, whose gradients may lie anywhere.
static void runTasksOnce(Rank &rank, RotaContext *context) {
  const Stage &stage = rank.stage();
  std::set<int> done;
  auto runOnce = [&](int action, const Call &call) {
    if (done.insert(call.task).second)
      runCall(rank, context, call, stage.slotsOf(action),
              stage.actions[action].microbatch);
  };
  for (int a = 0; a < static_cast<int>(stage.actions.size()); ++a) {
    for (const Call &call : stage.templateOf(a).calls)
      runOnce(a, call);
    for (const Call &call : stage.templateOf(a).evalCalls)
      runOnce(a, call);
  }
  for (const Update &update : stage.updates) {
    const Parameter &parameter = rank.program().parameters[update.parameter];
    if (parameter.isFrozen)
      continue;
    RotaFrame frame = updateFrame(
        rank, update, updatedPlace(rank.program(), update, rank.coordinates()));
    for (int task : {parameter.squareTask, parameter.updateTask})
      rank.runTask(context, task, frame);
  }
}

static void prepareTasks(Rank &rank) {
  rank.device().prepareTasks(rank.context(), [&](RotaContext *context) {
    runTasksOnce(rank, context);
  });
}

void prepareFirstStep(Rank &rank) {
  rank.setPosition("preparation");
  ComputeToken token(rank.cores());
  populate(rank, rank.arena());
  populate(rank, rank.hostArena());
  prepareTasks(rank);
}

void prepareGpu(Rank &rank) {
  if (!rank.device().isAsynchronous())
    return;
  ComputeToken token(rank.cores());
  prepareTasks(rank);
}

} // namespace rota
