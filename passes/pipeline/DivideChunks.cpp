// SPDX-License-Identifier: Apache-2.0
//
// Makes chunks of the layers of chunks. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/ChunkParts.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_DIVIDECHUNKS
#include "passes/pipeline/Passes.h.inc"

namespace {

using namespace ::rota::pipe;

struct DivideChunksPass : impl::DivideChunksBase<DivideChunksPass> {
  using DivideChunksBase::DivideChunksBase;

  void runOnOperation() override {
    if (mode != GatherMode::PerLayer)
      return;
    TimelineOp op = findTimeline(getOperation());
    if (!op || failed(verifyTimelineOp(op)) || failed(check(op)))
      return signalPassFailure();
    auto program = cast<ProgramOp>(op->getParentOp());
    Shape shape = program.getShape();
    std::vector<int64_t> layers = layersOf(program);
    int64_t parts = mostParts(shape, layers);
    if (parts == 1)
      return;
    Timeline timeline = divideChunks(op.read(), int(parts));
    if (std::string error = checkShape(timeline.shape); !error.empty()) {
      op.emitError("'mode' per-layer: ") << error;
      return signalPassFailure();
    }
    program.setParts(parts);
    program.getChunks().setChunksAttr(
        makeChunks(program.getStackOp(), timeline.shape,
                   layersOfParts(timeline.shape, layers)));
    op.write(timeline);
  }

private:
  /// Parts are of the chunks of a schedule, and their transfers are not there.
  static LogicalResult check(TimelineOp op) {
    Timeline timeline = op.read();
    if (timeline.shape.parts > 1)
      return op.emitError("'mode' per-layer: expected chunks without parts, "
                          "got ")
             << timeline.shape.parts << " parts";
    for (const std::vector<Action> &row : timeline.ranks)
      for (const Action &action : row)
        if (!isCompute(action.kind) && !isMessage(action.kind))
          return op.emitError("'mode' per-layer: expected compute actions and "
                              "messages, got ")
                 << toString(action) << " in schedule '" << op.getSchedule()
                 << "'";
    return success();
  }
};

} // namespace
} // namespace mlir::pipe
