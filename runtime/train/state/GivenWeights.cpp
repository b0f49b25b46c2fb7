// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/GivenWeights.h"
#include "runtime/Error.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/state/Resume.h"

#include <fmt/format.h>

namespace rota {

void requireWeights(const Run &run) {
  if (run.options.checkpoint.empty() && !run.weights)
    throw InputError("expected --weights, or --checkpoint for those of a run");
}

GivenWeights readGivenWeights(Rank &rank, const Run &run) {
  GivenWeights weights;
  if (const std::string &path = run.options.checkpoint; !path.empty()) {
    ResumeOptions from;
    from.from = path;
    auto resumed = resume(rank, {from, "", {}, StateExtent::Masters});
    weights.step = resumed->state.step;
    weights.source =
        fmt::format("step {} of '{}'", *weights.step, resumed->folder);
  } else {
    weights.source = describeWeights(run.options.seed, run.weights);
    initializeMasters(rank, run.options.seed, run.weights);
  }
  completeInitialization(rank);
  return weights;
}

} // namespace rota
