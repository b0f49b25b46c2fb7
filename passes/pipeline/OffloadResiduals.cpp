// SPDX-License-Identifier: Apache-2.0
//
// Adds copies of residuals to the program's timeline. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/Offloading.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_OFFLOADRESIDUALS
#include "passes/pipeline/Passes.h.inc"

namespace {

using namespace ::rota::pipe;

struct OffloadResidualsPass : impl::OffloadResidualsBase<OffloadResidualsPass> {
  using OffloadResidualsBase::OffloadResidualsBase;

  void runOnOperation() override {
    TimelineOp op = findTimeline(getOperation());
    if (!op || failed(verifyTimelineOp(op)))
      return signalPassFailure();
    Timeline timeline = op.read();
    std::vector<bool> chosen(timeline.shape.chunks(), chunks.empty());
    if (failed(choose(op, chosen)))
      return signalPassFailure();
    if (!hasAny(timeline, ActionKind::Offload))
      timeline = offloadResiduals(timeline, chosen, prefetch);
    op.write(timeline);
    for (const std::vector<Action> &row : timeline.ranks)
      copies += llvm::count_if(row, [](const Action &action) {
        return action.kind == ActionKind::Offload;
      });
  }

private:
  LogicalResult choose(TimelineOp op, std::vector<bool> &chosen) {
    if (prefetch < 0 || prefetch > kMaxActions)
      return op.emitError("expected 'prefetch' between 0 and ")
             << kMaxActions << ", got " << prefetch.getValue();
    for (int64_t chunk : chunks) {
      if (chunk < 0 || chunk >= int64_t(chosen.size()))
        return op.emitError("expected a chunk below ")
               << chosen.size() << " in 'chunks', got " << chunk;
      chosen[chunk] = true;
    }
    return success();
  }
};

} // namespace
} // namespace mlir::pipe
