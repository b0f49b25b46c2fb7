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
    if (mode == GatherMode::Auto && !dividesStorage())
      return;
    GatherRequest request{mode, {}, {}};
    if (window != -1)
      request.window = window;
    if (prefetch != -1)
      request.prefetch = prefetch;
    std::string error;
    std::optional<Timeline> timeline = gatherWeights(op.read(), request, error);
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
  /// True when ranks hold parts of what their functions read.
  bool dividesStorage() {
    WalkResult found = getOperation().walk([](::mlir::rota::ParamOp param) {
      auto placement = param.getPlacementAttr();
      return placement && placement.getStorage().getDimensions() !=
                              placement.getCompute().getDimensions()
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    return found.wasInterrupted();
  }
};

} // namespace
} // namespace mlir::pipe
