// SPDX-License-Identifier: Apache-2.0
//
// Plans stage by stage: what is static, the windows, the activations.
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/Activations.h"

#include <algorithm>

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

/// Leaves each wait in the first action that has it: those behind come later.
static void dropRepeatedWaits(std::vector<Action> &actions) {
  std::vector<char> waited(actions.size(), false);
  for (Action &action : actions) {
    auto repeated = [&](int wait) {
      bool before = waited[wait];
      waited[wait] = true;
      return before;
    };
    action.waits.erase(
        std::remove_if(action.waits.begin(), action.waits.end(), repeated),
        action.waits.end());
  }
}

/// The stages that share the outer chunk have the losses of some microbatches
/// each.
static void addLossAxis(Program &program) {
  for (size_t axis = 0; axis < program.mesh.size(); ++axis)
    if (program.mesh[axis].name == "stage" && program.mesh[axis].size > 1)
      program.lossAxes.push_back(int(axis));
  std::sort(program.lossAxes.begin(), program.lossAxes.end());
}

static bool planStage(StagePlan &&plan) {
  for (const pipe::Action &action : plan.row) {
    Action planned;
    planned.kind = static_cast<ActionKind>(action.kind);
    planned.chunk = action.chunk;
    planned.microbatch = action.microbatch;
    plan.stage.actions.push_back(planned);
  }
  Windows windows(plan);
  if (!windows.run() || !planActivations(plan, windows))
    return false;
  dropRepeatedWaits(plan.stage.actions);
  return true;
}

bool planMemory(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, Program &program,
                std::string &error) {
  error.clear();
  const pipe::Shape &shape = timeline.shape;
  program = layout.program;
  program.microbatches = shape.microbatches;
  if (!setMesh(shape.stages, program, error))
    return false;
  if (shape.outer)
    addLossAxis(program);
  std::vector<StagePlaces> places =
      placeStaticBlocks(layout, chunks, shape, program);
  for (int s = 0; s < shape.stages; ++s)
    if (!planStage({layout, chunks, shape, timeline.ranks[s], s, places[s],
                    program, program.stages[s], error}))
      return false;
  return true;
}

} // namespace rota::memory
