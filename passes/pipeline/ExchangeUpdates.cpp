// SPDX-License-Identifier: Apache-2.0
//
// Adds the exchanges of the optimizer to the program's timeline. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/UpdateExchange.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_EXCHANGEUPDATES
#include "passes/pipeline/Passes.h.inc"

namespace {

using namespace ::rota::pipe;
using ::mlir::rota::AxisRefAttr;
using ::mlir::rota::ShardingAttr;

/// The axes of the dimensions of a sharding.
SmallVector<AxisRefAttr> axesOf(ShardingAttr sharding) {
  SmallVector<AxisRefAttr> axes;
  for (::mlir::rota::DimensionShardingAttr dimension : sharding.getDimensions())
    llvm::append_range(axes, dimension.getAxes());
  return axes;
}

/// Axes that divide `to` and not `from`, in their order.
SmallVector<AxisRefAttr> added(ShardingAttr from, ShardingAttr to) {
  SmallVector<AxisRefAttr> axes = axesOf(to);
  SmallVector<AxisRefAttr> before = axesOf(from);
  llvm::erase_if(
      axes, [&](AxisRefAttr axis) { return llvm::is_contained(before, axis); });
  return axes;
}

struct ExchangeUpdatesPass : impl::ExchangeUpdatesBase<ExchangeUpdatesPass> {
  using ExchangeUpdatesBase::ExchangeUpdatesBase;

  void runOnOperation() override {
    TimelineOp op = findTimeline(getOperation());
    if (!op || failed(verifyTimelineOp(op)))
      return signalPassFailure();
    ExchangeRequest request;
    getOperation().walk([&](::mlir::rota::ParamOp param) {
      if (auto placement = param.getPlacementAttr())
        need(placement, request);
    });
    Timeline timeline = exchangeUpdates(op.read(), request);
    op.write(timeline);
    for (const std::vector<Action> &row : timeline.ranks)
      for (const Action &action : row) {
        sums += action.kind == ActionKind::SumGrad;
        gathers += action.kind == ActionKind::Refresh;
      }
  }

private:
  /// A gradient is summed over axes that divide only its optimizer part in one
  /// round, and before over the others that neither this nor storage divides.
  static void need(::mlir::rota::PlacementAttr placement,
                   ExchangeRequest &request) {
    auto storage = added(placement.getCompute(), placement.getStorage());
    auto optimizer = added(placement.getStorage(), placement.getOptimizer());
    bool scatters = false, sums = false;
    for (AxisRefAttr axis : placement.getCompute().getUnreduced()) {
      scatters |= llvm::is_contained(optimizer, axis);
      sums |= !llvm::is_contained(optimizer, axis) &&
              !llvm::is_contained(storage, axis);
    }
    request.rounds = std::max(request.rounds, int(scatters) + int(sums));
    request.refreshes |= !optimizer.empty();
  }
};

} // namespace
} // namespace mlir::pipe
