// SPDX-License-Identifier: Apache-2.0
//
// Adds weight windows to the program's timeline. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/WeightWindows.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_GATHERWEIGHTS
#include "passes/pipeline/Passes.h.inc"

namespace {

using namespace ::rota::pipe;

struct GatherWeightsPass : impl::GatherWeightsBase<GatherWeightsPass> {
  using GatherWeightsBase::GatherWeightsBase;

  void runOnOperation() override {
    TimelineOp op = findTimeline(getOperation());
    if (!op || failed(verifyTimelineOp(op)))
      return signalPassFailure();
    std::string error;
    std::optional<Timeline> timeline = gather(op.read(), error);
    if (!timeline) {
      op.emitError(error);
      return signalPassFailure();
    }
    op.write(*timeline);
    for (const std::vector<Action> &row : timeline->ranks)
      for (const Action &action : row) {
        gathers += action.kind == ActionKind::Unshard;
        reductions += action.kind == ActionKind::ReduceGrad;
      }
  }

private:
  std::optional<Timeline> gather(const Timeline &timeline, std::string &error) {
    std::optional<GatherMode> parsed = mode == "auto"
                                           ? defaultGatherMode(timeline.shape)
                                           : parseGatherMode(mode.getValue());
    if (!parsed) {
      error = "expected 'mode' to be per-iteration, once or per-repeat, got '" +
              mode + "'";
      return std::nullopt;
    }
    GatherRequest request{*parsed, {}, {}};
    if (window != -1)
      request.window = window;
    if (prefetch != -1)
      request.prefetch = prefetch;
    return gatherWeights(timeline, request, error);
  }
};

} // namespace
} // namespace mlir::pipe
