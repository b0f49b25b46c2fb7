// SPDX-License-Identifier: Apache-2.0
//
// Moves layers between chunks. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"

#include "mlir/IR/Remarks.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_BALANCESTAGES
#include "passes/pipeline/Passes.h.inc"

namespace {

using ::mlir::rota::StackOp;
using ::rota::pipe::PartCosts;

struct BalanceStagesPass : impl::BalanceStagesBase<BalanceStagesPass> {
  using BalanceStagesBase::BalanceStagesBase;

  void runOnOperation() override {
    if (split == ::rota::pipe::LayerSplit::Even)
      return;
    TimelineOp op = findTimeline(getOperation());
    if (!op)
      return signalPassFailure();
    auto program = cast<ProgramOp>(op->getParentOp());
    StackOp stack = program.getStackOp();
    auto timeline = op.read();
    PartCosts costs = operationsOf(program);
    std::vector<int64_t> before = layersOf(program);
    std::vector<int64_t> after =
        ::rota::pipe::balanceLayers(timeline, costs, before);
    program.getChunks().setChunksAttr(
        makeChunks(stack, program.getShape(), after));

    std::string layers;
    llvm::raw_string_ostream stream(layers);
    llvm::interleave(after, stream, ",");
    remark::analysis(
        program.getLoc(),
        remark::RemarkOpts::name("balanced-stages").category("pipeline"))
        << remark::metric("Layers", layers)
        << remark::metric("MakespanBefore", makespanOf(timeline, costs, before))
        << remark::metric("Makespan", makespanOf(timeline, costs, after));
  }
};

} // namespace
} // namespace mlir::pipe
