// SPDX-License-Identifier: Apache-2.0
//
// The bridge from the op of a timeline to plain timelines. Apart from Pipe.cpp,
// which is compiled without optimization: rows may have a million actions.
#include "ir/pipe/Pipe.h"

using namespace mlir;
using namespace mlir::pipe;

/// The attribute of a window's bound; null when there is no bound.
static IntegerAttr windowOf(MLIRContext *context,
                            const ::rota::pipe::Timeline &timeline) {
  if (timeline.window == 0)
    return {};
  return Builder(context).getI64IntegerAttr(timeline.window);
}

void TimelineOp::build(OpBuilder &builder, OperationState &state,
                       StringRef schedule,
                       const ::rota::pipe::Timeline &timeline) {
  build(builder, state, builder.getStringAttr(schedule),
        builder.getI64IntegerAttr(timeline.delay),
        windowOf(builder.getContext(), timeline), timeline.ranks);
}

::rota::pipe::Timeline TimelineOp::read() {
  ::rota::pipe::Timeline timeline;
  timeline.shape = cast<ProgramOp>((*this)->getParentOp()).getShape();
  timeline.delay = getDelay();
  timeline.window = getWindow().value_or(0);
  timeline.ranks = getProperties().rows;
  return timeline;
}

void TimelineOp::write(const ::rota::pipe::Timeline &timeline) {
  getProperties().rows = timeline.ranks;
  setDelay(timeline.delay);
  if (IntegerAttr window = windowOf(getContext(), timeline))
    setWindowAttr(window);
  else
    removeWindowAttr();
}
