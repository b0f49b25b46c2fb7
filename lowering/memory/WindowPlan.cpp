// SPDX-License-Identifier: Apache-2.0
//
// Walks a stage's timeline twice: for the times of the windows, then for their
// places.
#include "lowering/memory/WindowPlan.h"

namespace rota::memory {

using Kind = ActionKind;

bool WindowPlan::run() {
  endOffset = plan.offsets.end;
  if (!hasWindows(plan.program)) {
    useStatic();
    return true;
  }
  std::vector<ActionDraft> drafts = plan.drafts;
  Section fitted(endOffset);
  fitted.recordTimes();
  fitted.recordLives(plan.lives, plan.row.size());
  walk(fitted);
  Packing packing = packBlocks(fitted.times());
  int64_t peak = fitted.peak();
  if (packing.peak < peak && plan.error.empty()) {
    plan.drafts = std::move(drafts);
    Section packed(endOffset, std::move(packing));
    walk(packed);
    peak = packed.peak();
  }
  plan.stage.regions.push_back({"windows", endOffset, peak});
  endOffset += peak;
  return plan.error.empty();
}

/// All actions of a chunk find the same blocks.
void WindowPlan::useStatic() {
  struct Found {
    int values = -1, gradients = -1;
  };
  std::vector<Found> found(plan.shape.chunks());
  for (size_t a = 0; a < plan.row.size(); ++a) {
    if (!isCompute(plan.row[a].kind))
      continue;
    Found &of = found[plan.row[a].chunk];
    if (of.values < 0) {
      std::vector<int64_t> values, gradients;
      for (const ChunkBlock &b : plan.blocksOf(plan.row[a].chunk)) {
        values.push_back(b.offsets->values);
        gradients.push_back(b.offsets->gradients);
      }
      of = {numberOf(values), numberOf(gradients)};
    }
    plan.drafts[a].values = of.values;
    plan.drafts[a].gradients = of.gradients;
  }
}

void WindowPlan::walk(Section &windows) {
  section = &windows;
  weights.assign(plan.shape.chunks(), {});
  gradients.assign(plan.shape.chunks(), {});
  for (int a = 0; a < int(plan.row.size()) && plan.error.empty(); ++a) {
    Kind kind = plan.row[a].kind;
    section->beginAction(a);
    if (kind == Kind::Unshard)
      unshard(a);
    else if (kind == Kind::Reshard)
      reshard(a);
    else if (kind == Kind::ReduceGrad)
      reduce(a);
    if (!isCompute(kind))
      continue;
    useWeights(a);
    if (kind != Kind::Forward)
      useGradients(a);
    if (!plan.row[a].startsPair)
      section->settle();
  }
  checkReduced();
}

void WindowPlan::unshard(int action) {
  int chunk = plan.row[action].chunk;
  Gathered &gathered = weights[chunk];
  ActionDraft &draft = plan.drafts[action];
  if (!gathered.blocks.empty())
    return plan.fail(action, "gathers weights that are there: expected RESHARD "
                             "before");
  for (const ChunkBlock &b : plan.blocksOf(chunk))
    gathered.blocks.push_back(
        section->open(b.block->bytes, {BlockUse::Weights, chunk}, draft.waits));
  gathered.unshard = action;
  gathered.list = -1;
  draft.values = numberOf(gathered);
}

void WindowPlan::reshard(int action) {
  Gathered &gathered = weights[plan.row[action].chunk];
  if (gathered.blocks.empty())
    return plan.fail(action, "frees weights that no UNSHARD has gathered");
  if (gathered.unshard >= 0) // nothing has used them
    plan.drafts[action].waits.push_back(gathered.unshard);
  for (ArenaBlock &block : gathered.blocks)
    section->close(block);
  gathered = {};
}

void WindowPlan::useWeights(int action) {
  Gathered &gathered = weights[plan.row[action].chunk];
  if (gathered.blocks.empty())
    return plan.fail(action,
                     "needs the weights of chunk " +
                         std::to_string(plan.row[action].chunk) +
                         ", which are divided over ranks: expected UNSHARD "
                         "before it in the timeline");
  if (gathered.unshard >= 0)
    plan.drafts[action].waits.push_back(gathered.unshard);
  gathered.unshard = -1;
  plan.drafts[action].values = numberOf(gathered);
}

void WindowPlan::checkReduced() {
  for (int a = int(plan.row.size()); a-- > 0 && plan.error.empty();)
    for (const ArenaBlock &block : gradients[plan.row[a].chunk].blocks)
      if (block.offset >= 0)
        plan.fail(a, "is the last of a chunk whose gradient is not reduced: "
                     "expected REDUCE_GRAD after its last B or W");
}

void WindowPlan::useGradients(int action) {
  const Action &a = plan.row[action];
  ActionDraft &draft = plan.drafts[action];
  Gathered &gathered = gradients[a.chunk];
  std::vector<ChunkBlock> blocks = plan.blocksOf(a.chunk);
  gathered.blocks.resize(blocks.size());
  std::vector<int64_t> cleared(blocks.size(), -1);
  bool clears = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    // embed's backward goes with the input's half.
    bool embed = i == 0 && a.chunk == 0;
    bool adds = a.kind == Kind::Backward ||
                a.kind == (embed ? Kind::BackwardInput : Kind::BackwardWeight);
    int64_t bytes = blocks[i].block->gradientBytes;
    if (!adds || bytes == 0 || gathered.blocks[i].offset >= 0)
      continue;
    gathered.blocks[i] =
        section->open(bytes, {BlockUse::Gradients, a.chunk}, draft.waits);
    cleared[i] = gathered.blocks[i].offset;
    clears = true;
    gathered.list = -1;
  }
  draft.gradients = numberOf(gathered);
  if (clears)
    draft.cleared = numberOf(cleared);
}

void WindowPlan::reduce(int action) {
  Gathered &gathered = gradients[plan.row[action].chunk];
  if (gathered.blocks.empty())
    return;
  plan.drafts[action].gradients = numberOf(gathered);
  for (ArenaBlock &window : gathered.blocks)
    section->closeAfter(window, action);
  gathered.list = -1;
}

int WindowPlan::numberOf(Gathered &gathered) {
  if (gathered.list < 0) {
    std::vector<int64_t> offsets;
    for (const ArenaBlock &block : gathered.blocks)
      offsets.push_back(block.offset);
    gathered.list = numberOf(offsets);
  }
  return gathered.list;
}

int WindowPlan::numberOf(const std::vector<int64_t> &offsets) {
  auto [found, isNew] = numbers.try_emplace(offsets, int(lists.size()));
  if (isNew)
    lists.push_back(&found->first);
  return found->second;
}

} // namespace rota::memory
