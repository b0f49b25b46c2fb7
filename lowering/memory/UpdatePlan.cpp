// SPDX-License-Identifier: Apache-2.0
//
// See UpdatePlan.h.
#include "lowering/memory/UpdatePlan.h"

#include <algorithm>
#include <utility>

namespace rota::memory {

using Kind = ActionKind;

/// Updates of the stage that own a parameter of the chunk and that `accept`
/// takes, in the stage's order.
template <typename Accept>
static std::vector<int> updatesOf(const StagePlan &plan, int chunk,
                                  Accept accept) {
  const std::vector<Update> &updates = plan.stage.updates;
  std::vector<int> result;
  for (const ChunkBlock &b : plan.blocksOf(chunk))
    for (size_t i = 0; i < b.block->entries.size(); ++i) {
      int parameter = b.block->entries[i].parameter;
      auto found = plan.updates.find({parameter, b.offsets->stored[i]});
      if (found != plan.updates.end() &&
          accept(updates[found->second], plan.program.parameters[parameter]))
        result.push_back(found->second);
    }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<int> summedUpdates(const StagePlan &plan, int chunk, int round) {
  return updatesOf(plan, chunk, [&](const Update &update, const Parameter &p) {
    return update.gradients.size() == 1 && round < int(p.reduce.size()) &&
           plan.program.collectives[p.reduce[round]].kind !=
               Collective::Kind::Slice;
  });
}

std::vector<int> refreshedUpdates(const StagePlan &plan, int chunk) {
  return updatesOf(plan, chunk, [&](const Update &update, const Parameter &p) {
    bool isOfBothEnds = update.gradients.size() > 1;
    return p.refresh >= 0 && update.copies.empty() &&
           (chunk == 0 || !isOfBothEnds);
  });
}

void planExchanges(StagePlan &plan) {
  struct ChunkState {
    std::vector<int> reductions; // that no SUM_GRAD waits for
    int sum = -1, rounds = 0;
    int refresh = -1; // not waited for yet
  };
  std::vector<ChunkState> chunks(plan.shape.chunks());
  for (int a = 0; a < int(plan.row.size()); ++a) {
    const Action &action = plan.row[a];
    ActionDraft &draft = plan.drafts[a];
    ChunkState &chunk = chunks[action.chunk];
    if (action.kind == Kind::ReduceGrad)
      chunk.reductions.push_back(a);
    if (action.kind == Kind::Refresh)
      chunk.refresh = a;
    bool reads = isCompute(action.kind) || action.kind == Kind::Unshard;
    if (reads && chunk.refresh >= 0)
      draft.waits.push_back(std::exchange(chunk.refresh, -1));
    if (action.kind != Kind::SumGrad)
      continue;
    draft.round = chunk.rounds++;
    if (summedUpdates(plan, action.chunk, draft.round).empty())
      continue;
    draft.waits = std::exchange(chunk.reductions, {});
    if (chunk.sum >= 0)
      draft.waits.push_back(chunk.sum);
    chunk.sum = a;
  }
}

} // namespace rota::memory
