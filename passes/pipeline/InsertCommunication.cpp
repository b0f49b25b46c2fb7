// SPDX-License-Identifier: Apache-2.0
//
// Adds sends and receives to the program's timeline. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/Communication.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_INSERTCOMMUNICATION
#include "passes/pipeline/Passes.h.inc"

namespace {

using namespace ::rota::pipe;

struct InsertCommunicationPass
    : impl::InsertCommunicationBase<InsertCommunicationPass> {
  void runOnOperation() override {
    TimelineOp op = findTimeline(getOperation());
    if (!op || failed(verifyTimelineOp(op)))
      return signalPassFailure();
    Timeline timeline = op.read();
    auto program = cast<ProgramOp>(op->getParentOp());
    if (!hasCommunication(timeline))
      op.write(addCommunication(timeline, costsOf(program, layersOf(program))));
    for (const std::vector<Action> &row : op.read().ranks)
      messages += llvm::count_if(
          row, [](const Action &action) { return isSend(action.kind); });
  }
};

} // namespace
} // namespace mlir::pipe
