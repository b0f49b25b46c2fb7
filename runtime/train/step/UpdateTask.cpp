// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/UpdateTask.h"
#include "runtime/Error.h"
#include "runtime/program/TensorNames.h"
#include "runtime/program/UpdatePlaces.h"

#include <fmt/format.h>

namespace rota {

RotaFrame updateFrame(Rank &rank, const Update &update, int64_t output) {
  const StepOffsets &step = rank.stage().step;
  RotaFrame frame{};
  frame.parameters = rank.at(update.master);
  frame.gradients =
      rank.at(gradientPlace(rank.program(), update, rank.coordinates()));
  frame.residuals = rank.at(update.states);
  frame.data = rank.at(step.scalars);
  frame.output = rank.at(output);
  frame.scratch = rank.at(step.scratch);
  frame.constants = rank.at(step.constants);
  return frame;
}

void runUpdateTask(Rank &rank, int task, const Update &update, int64_t output) {
  rank.runTask(task, updateFrame(rank, update, output));
  if (!rank.context()->failed)
    return;
  rank.rethrowFailure();
  throw RunError(fmt::format(
      "rank {}: optimizer, '{}': {}", rank.number(),
      tensorName(rank.program().parameters[update.parameter], update.layer),
      rank.context()->failure));
}

} // namespace rota
