// SPDX-License-Identifier: Apache-2.0
//
// Plans stage by stage: what is static, the windows, the activations.
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/ActionTemplates.h"
#include "lowering/memory/Activations.h"
#include "lowering/memory/UpdatePlan.h"

#include <algorithm>
#include <utility>

namespace rota::memory {

/// The mesh of `program`, of the pipeline's stages alone where it has none.
static bool setMesh(int stages, Program &program, std::string &error) {
  if (program.mesh.empty())
    program.mesh = {{"stage", stages}};
  for (const MeshAxis &axis : program.mesh)
    if (axis.name == "stage" && axis.size != stages)
      error = "expected the mesh's axis 'stage' to have the pipeline's " +
              std::to_string(stages) + " stages, got " +
              std::to_string(axis.size);
  return error.empty();
}

/// Lets the first half of a pair wait for what both halves need: they start
/// together.
static void waitForPairs(const std::vector<Action> &row,
                         std::vector<ActionDraft> &drafts) {
  for (size_t a = 1; a < row.size(); ++a)
    if (pipe::endsPair(row, a)) {
      std::vector<int> &waits = drafts[a].waits;
      drafts[a - 1].waits.insert(drafts[a - 1].waits.end(), waits.begin(),
                                 waits.end());
      waits.clear();
    }
}

/// Leaves each wait in the first action that has it: later actions need not
/// wait again.
static void dropRepeatedWaits(std::vector<ActionDraft> &drafts) {
  std::vector<char> waited(drafts.size(), false);
  for (ActionDraft &draft : drafts)
    std::erase_if(draft.waits,
                  [&](int wait) { return std::exchange(waited[wait], true); });
}

StashLayout layOutStashes(const ModelLayout &layout, const ChunkTable &chunks,
                          int chunk) {
  StashLayout stashes;
  Packer stash, offloaded, cotangents;
  for (size_t j = 0; j < chunks[chunk].size(); ++j) {
    const TaskGroup &kind = layout.kinds[chunks[chunk][j].kind];
    Packer &inputs = kind.offloadsInput ? offloaded : stash;
    stashes.inputs.push_back(j == 0 ? 0 : inputs.add(layout.activationBytes));
    stashes.residuals.push_back(stash.add(kind.residualBytes));
    stashes.offloaded.push_back(offloaded.add(kind.offloadedBytes));
    stashes.cotangents.push_back(cotangents.add(kind.cotangentBytes));
  }
  if (size_t(chunk) + 1 == chunks.size())
    stashes.cotangents.push_back(cotangents.add(layout.loss.cotangentBytes));
  stashes.stashBytes = stash.bytes();
  stashes.offloadedBytes = offloaded.bytes();
  stashes.cotangentBytes = cotangents.bytes();
  return stashes;
}

/// With unpipelined layers, each stage has the losses of some of the
/// microbatches.
static void addLossAxis(Program &program) {
  for (size_t axis = 0; axis < program.mesh.size(); ++axis)
    if (program.mesh[axis].name == "stage" && program.mesh[axis].size > 1)
      program.lossAxes.push_back(int(axis));
  std::sort(program.lossAxes.begin(), program.lossAxes.end());
}

static bool planStage(StagePlan &&plan) {
  plan.drafts.resize(plan.row.size());
  for (const Update &update : plan.stage.updates)
    plan.updates[{update.parameter, update.stored}] =
        int(&update - plan.stage.updates.data());
  for (int c = 0; c < plan.shape.chunks(); ++c)
    plan.stashes.push_back(plan.shape.owns(plan.number, c)
                               ? layOutStashes(plan.layout, plan.chunks, c)
                               : StashLayout{});
  WindowPlan windows(plan);
  if (!windows.run() || !planActivations(plan, windows.end()))
    return false;
  planExchanges(plan);
  waitForPairs(plan.row, plan.drafts);
  dropRepeatedWaits(plan.drafts);
  ActionTemplates templates(plan, windows);
  templates.addStartCalls();
  for (size_t a = 0; a < plan.row.size(); ++a)
    plan.stage.addAction(templates.find(int(a)), plan.row[a].microbatch,
                         plan.drafts[a].slots, plan.drafts[a].waits);
  return true;
}

bool planMemory(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, Program &program,
                std::string &error, std::vector<BlockLives> *lives) {
  error.clear();
  const pipe::Shape &shape = timeline.shape;
  program = layout.program;
  program.microbatches = shape.microbatches;
  if (!setMesh(shape.stages, program, error))
    return false;
  if (shape.hasUnpipelined)
    addLossAxis(program);
  std::vector<StageOffsets> offsets =
      layOutStaticBlocks(layout, chunks, timeline, program);
  if (lives)
    lives->assign(shape.stages, {});
  for (int s = 0; s < shape.stages; ++s)
    if (!planStage({layout,
                    chunks,
                    shape,
                    timeline.ranks[s],
                    s,
                    offsets[s],
                    program,
                    program.stages[s],
                    error,
                    {},
                    {},
                    lives ? &(*lives)[s] : nullptr}))
      return false;
  return true;
}

} // namespace rota::memory
