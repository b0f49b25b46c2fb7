// SPDX-License-Identifier: Apache-2.0
//
// Walks a stage's timeline twice: for the windows of weights, then for those of
// gradients, which begin behind them.
#include "lowering/memory/Windows.h"

namespace rota::memory {

using Kind = pipe::ActionKind;

bool Windows::run() {
  endOffset = plan.places.end;
  valuesOf.assign(plan.row.size(), -1);
  gradientsOf.assign(plan.row.size(), -1);
  if (!hasWindows(plan.program)) {
    useStatic();
    return true;
  }
  planWeights();
  planGradients();
  return plan.error.empty();
}

std::vector<Windows::ChunkBlock> Windows::blocksOf(int chunk) const {
  std::vector<ChunkBlock> blocks;
  if (chunk == 0)
    blocks.push_back({&plan.layout.embed.block, &plan.places.embed});
  for (const ChunkLayer &l : plan.chunks[chunk])
    blocks.push_back(
        {&plan.layout.kinds[l.kind].block, &plan.places.layers.at(l.layer)});
  if (plan.isLast(chunk))
    blocks.push_back({&plan.layout.loss.block, &plan.places.loss});
  return blocks;
}

/// All actions of a chunk find the same blocks.
void Windows::useStatic() {
  std::vector<int> first(plan.shape.chunks(), -1);
  for (size_t a = 0; a < plan.row.size(); ++a) {
    if (!pipe::isCompute(plan.row[a].kind))
      continue;
    int chunk = plan.row[a].chunk;
    if (first[chunk] < 0) {
      first[chunk] = int(states.size());
      states.resize(states.size() + 2);
      for (const ChunkBlock &b : blocksOf(chunk)) {
        states[first[chunk]].push_back(b.place->values);
        states[first[chunk] + 1].push_back(b.place->gradients);
      }
    }
    valuesOf[a] = first[chunk];
    gradientsOf[a] = first[chunk] + 1;
  }
}

void Windows::planWeights() {
  Section weights(endOffset);
  section = &weights;
  chunks.assign(plan.shape.chunks(), {});
  for (int a = 0; a < int(plan.row.size()) && plan.error.empty(); ++a) {
    Kind kind = plan.row[a].kind;
    if (kind == Kind::Unshard)
      unshard(a);
    else if (kind == Kind::Reshard)
      reshard(a);
    else if (pipe::isCompute(kind))
      useWeights(a);
  }
  addRegion("windows", weights);
}

void Windows::unshard(int action) {
  int chunk = plan.row[action].chunk;
  Gathered &gathered = chunks[chunk];
  Action &planned = plan.stage.actions[action];
  if (!gathered.blocks.empty())
    return plan.fail(action, "gathers weights that are there: expected RESHARD "
                             "before");
  for (const ChunkBlock &b : blocksOf(chunk)) {
    ArenaBlock window = section->open(b.block->bytes, planned.waits);
    for (size_t i = 0; i < b.block->entries.size(); ++i) {
      const ParameterBlock::Entry &entry = b.block->entries[i];
      planned.transfers.push_back(
          {plan.program.parameters[entry.parameter].unshard, b.place->stored[i],
           window.offset + entry.value, 0});
    }
    gathered.blocks.push_back(window);
  }
  gathered.unshard = action;
  gathered.state = -1;
}

void Windows::reshard(int action) {
  Gathered &gathered = chunks[plan.row[action].chunk];
  if (gathered.blocks.empty())
    return plan.fail(action, "frees weights that no UNSHARD has gathered");
  if (gathered.unshard >= 0) // nothing has used them
    plan.stage.actions[action].waits.push_back(gathered.unshard);
  for (ArenaBlock &block : gathered.blocks)
    section->close(block);
  gathered = {};
}

void Windows::useWeights(int action) {
  Gathered &gathered = chunks[plan.row[action].chunk];
  if (gathered.blocks.empty())
    return plan.fail(action,
                     "needs the weights of chunk " +
                         std::to_string(plan.row[action].chunk) +
                         ", which are divided over ranks: expected UNSHARD "
                         "before it in the timeline");
  if (gathered.unshard >= 0)
    plan.stage.actions[action].waits.push_back(gathered.unshard);
  gathered.unshard = -1;
  valuesOf[action] = stateOf(gathered);
}

void Windows::planGradients() {
  Section gradients(endOffset);
  section = &gradients;
  chunks.assign(plan.shape.chunks(), {});
  for (int a = 0; a < int(plan.row.size()) && plan.error.empty(); ++a) {
    Kind kind = plan.row[a].kind;
    if (kind == Kind::ReduceGrad)
      reduce(a);
    else if (pipe::isCompute(kind))
      useGradients(a);
  }
  for (int a = int(plan.row.size()); a-- > 0 && plan.error.empty();)
    for (const ArenaBlock &block : chunks[plan.row[a].chunk].blocks)
      if (block.offset >= 0)
        plan.fail(a, "is the last of a chunk whose gradient is not reduced: "
                     "expected REDUCE_GRAD after its last B or W");
  addRegion("gradient windows", gradients);
}

void Windows::useGradients(int action) {
  const pipe::Action &a = plan.row[action];
  Action &planned = plan.stage.actions[action];
  Gathered &gathered = chunks[a.chunk];
  std::vector<ChunkBlock> blocks = blocksOf(a.chunk);
  gathered.blocks.resize(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    // embed's backward goes with the input's half.
    bool embed = i == 0 && a.chunk == 0;
    bool adds = a.kind == Kind::Backward ||
                a.kind == (embed ? Kind::BackwardInput : Kind::BackwardWeight);
    int64_t bytes = blocks[i].block->gradientBytes;
    if (!adds || bytes == 0 || gathered.blocks[i].offset >= 0)
      continue;
    gathered.blocks[i] = section->open(bytes, planned.waits);
    planned.clears.push_back({gathered.blocks[i].offset, bytes});
    gathered.state = -1;
  }
  gradientsOf[action] = stateOf(gathered);
  section->settle();
}

void Windows::reduce(int action) {
  int chunk = plan.row[action].chunk;
  Gathered &gathered = chunks[chunk];
  std::vector<ChunkBlock> blocks = blocksOf(chunk);
  for (size_t k = 0; k < gathered.blocks.size(); ++k) {
    ArenaBlock &window = gathered.blocks[k];
    if (window.offset < 0)
      continue;
    const auto &entries = blocks[k].block->entries;
    for (size_t i = 0; i < entries.size(); ++i)
      plan.stage.actions[action].transfers.push_back(
          {plan.program.parameters[entries[i].parameter].reduceGrad,
           window.offset + entries[i].gradient,
           blocks[k].place->accumulators[i], 0});
    section->closeAfter(window, action);
  }
  gathered.state = -1;
}

int Windows::stateOf(Gathered &gathered) {
  if (gathered.state < 0) {
    gathered.state = int(states.size());
    states.emplace_back();
    for (const ArenaBlock &block : gathered.blocks)
      states.back().push_back(block.offset);
  }
  return gathered.state;
}

void Windows::addRegion(const char *use, const Section &planned) {
  plan.stage.regions.push_back({use, endOffset, planned.peak()});
  endOffset += planned.peak();
}

} // namespace rota::memory
