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
  static bool needsCommunication(TimelineOp timeline) {
    auto value = timeline.read();
    if (::rota::pipe::hasCommunication(value))
      return false;
    for (int chunk = 0; chunk < value.shape.chunks(); ++chunk)
      if (value.shape.sendsForward(chunk))
        return true;
    return false;
  }
};

} // namespace
} // namespace mlir::pipe
