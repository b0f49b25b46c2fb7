// SPDX-License-Identifier: Apache-2.0
//
// Proves that the program's timeline runs one training step. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_VERIFYTIMELINE
#include "passes/pipeline/Passes.h.inc"

namespace {

struct VerifyTimelinePass : impl::VerifyTimelineBase<VerifyTimelinePass> {
  using VerifyTimelineBase::VerifyTimelineBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    TimelineOp timeline = findTimeline(getOperation());
    if (!timeline || failed(verifyTimelineOp(timeline)))
      return signalPassFailure();
    if (communication && needsCommunication(timeline)) {
      timeline.emitError() << "timeline '" << timeline.getSchedule()
                           << "', expected sends and receives between "
                           << timeline.getRows().size()
                           << " ranks, got none: run 'insert-communication'";
      signalPassFailure();
    }
  }

private:
  /// With several stages, chunks 0 and 1 are on different ranks in any
  /// placement.
  static bool needsCommunication(TimelineOp timeline) {
    return timeline.getRows().size() > 1 &&
           !::rota::pipe::hasCommunication(timeline.read());
  }
};

} // namespace
} // namespace mlir::pipe
