// SPDX-License-Identifier: Apache-2.0
//
// Moves layers between chunks. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"

#include "ir/rota/Model.h"
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
    TimelineOp op = findTimeline(getOperation());
    if (!op)
      return signalPassFailure();
    auto program = cast<ProgramOp>(op->getParentOp());
    StackOp stack = program.getStackOp();
    auto timeline = op.read();
    PartCosts costs = costsOf(stack);
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

private:
  /// Operations of a function of `scope`; none where there is none.
  static double flopsOf(Operation *scope, ::mlir::rota::ModelPart part) {
    auto function = ::mlir::rota::functionIn(
        scope, part, ::mlir::rota::FunctionKind::Forward);
    return function ? ::mlir::rota::Model::flopsOf(function) : 0.0;
  }

  /// Calls of the loss in a microbatch; as Model::lossCalls, for modules whose
  /// other ends may be missing.
  double lossCalls(StackOp stack) {
    using namespace ::mlir::rota;
    auto elements = [](func::FuncOp function) {
      auto type = cast<RankedTensorType>(function.getArgumentTypes().front());
      return double(type.getNumElements());
    };
    auto loss =
        functionIn(getOperation(), ModelPart::Loss, FunctionKind::Forward);
    auto layer = *stack.getBody().getOps<LayerOp>().begin();
    auto forward = functionIn(layer, ModelPart::Layer, FunctionKind::Forward);
    return loss ? elements(forward) / elements(loss) : 0.0;
  }

  PartCosts costsOf(StackOp stack) {
    using ::mlir::rota::ModelPart;
    return partCosts(stack, flopsOf(getOperation(), ModelPart::Embed),
                     lossCalls(stack) *
                         flopsOf(getOperation(), ModelPart::Loss),
                     [&](StringRef kind) {
                       return flopsOf(SymbolTable::lookupSymbolIn(stack, kind),
                                      ModelPart::Layer);
                     });
  }
};

} // namespace
} // namespace mlir::pipe
