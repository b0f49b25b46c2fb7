// SPDX-License-Identifier: Apache-2.0
//
// Divides the stack's layers into chunks. See Passes.td.
#include "passes/pipeline/Passes.h"

#include "mlir/IR/Remarks.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/pipeline/Passes.h.inc"

namespace {

using ::mlir::rota::StackOp;

struct SplitStagesPass : impl::SplitStagesBase<SplitStagesPass> {
  using SplitStagesBase::SplitStagesBase;

  void runOnOperation() override {
    StackOp stack = findStack();
    if (!stack || failed(checkSizes(stack)) || failed(deriveSizes(stack)))
      return signalPassFailure();
    if (pipelined < int64_t(stack.getLayers()))
      remark::analysis(
          stack.getLoc(),
          remark::RemarkOpts::name("unpipelined-layers").category("pipeline"))
          << remark::reason("layers {0} to {1} are left out of the pipeline "
                            "and run {2}",
                            pipelined, int64_t(stack.getLayers()) - 1,
                            isUnpipelined()
                                ? "on all stages, which divide the microbatches"
                                : "in the last chunk");
    makeProgram(stack);
  }

private:
  int64_t pipelined = 0, perChunk = 0, rows = 0; // L and R once derived
  SmallVector<int64_t> counts;                   // layers of each chunk

  StackOp findStack() {
    ModuleOp module = getOperation();
    if (!module.getOps<ProgramOp>().empty()) {
      (*module.getOps<ProgramOp>().begin())
          .emitError("the module is a pipeline already");
      return {};
    }
    auto stacks = module.getOps<StackOp>();
    int64_t count = std::distance(stacks.begin(), stacks.end());
    if (count == 1)
      return *stacks.begin();
    module.emitError() << "expected one 'rota.stack' in the module, got "
                       << count;
    return {};
  }

  /// Checks the ranges that do not depend on the layers.
  LogicalResult checkSizes(StackOp stack) {
    for (auto [name, value, least] :
         {std::tuple<StringRef, int64_t, int64_t>("stages", stages, 1),
          {"microbatches", microbatches, 1},
          {"repeats", repeats, 0},
          {"layers-per-chunk", layersPerChunk, 0},
          {"pipeline-layers", pipelineLayers, 0},
          {"layers", stack.getLayers(), 1}})
      if (value < least || value > ::rota::pipe::kMaxActions)
        return stack.emitError()
               << "expected '" << name << "' between " << least << " and "
               << ::rota::pipe::kMaxActions << ", got " << value;
    return success();
  }

  /// Derives L and R so that S * R * L is the number of pipelined layers.
  LogicalResult deriveSizes(StackOp stack) {
    int64_t layers = stack.getLayers();
    pipelined = pipelineLayers ? int64_t(pipelineLayers) : layers;
    if (pipelined > layers)
      return stack.emitError()
             << "'pipeline-layers': expected at most as many pipelined layers "
                "as layers, got "
             << pipelined << " and " << layers;
    if (!layersPerChunk && repeats <= 1 && pipelined % stages != 0)
      return divideUnevenly(stack);
    int64_t unit = stages * (layersPerChunk ? int64_t(layersPerChunk) : 1);
    if (pipelined % unit != 0)
      return stack.emitError()
             << (layersPerChunk ? "'layers-per-chunk'" : "'stage'")
             << ": expected stages * layers per chunk to divide the pipelined "
                "layers, got "
             << unit << " (" << stages.getValue() << " * "
             << unit / int64_t(stages) << ") and " << pipelined;
    rows = repeats ? int64_t(repeats)
                   : (layersPerChunk ? pipelined / unit : int64_t(1));
    perChunk = layersPerChunk ? int64_t(layersPerChunk)
                              : std::max<int64_t>(1, pipelined / stages / rows);
    if (stages * rows * perChunk != pipelined)
      return stack.emitError()
             << (repeats ? "'repeats'" : "'layers-per-chunk'")
             << ": expected stages * repeats * layers per chunk to be the "
                "number "
                "of pipelined layers, got "
             << stages * rows * perChunk << " (" << stages.getValue() << " * "
             << rows << " * " << perChunk << ") and " << pipelined;
    if (failed(checkShape(stack)))
      return failure();
    counts.assign(stages * rows, perChunk);
    addUnpipelinedLayers(stack);
    return success();
  }

  /// One chunk for each stage, of two sizes. The chunks at the ends, which have
  /// the embedding and the loss, are the first to get a layer less.
  LogicalResult divideUnevenly(StackOp stack) {
    if (pipelined < stages)
      return stack.emitError()
             << "'stage': expected a pipelined layer for each stage at least, "
                "got "
             << pipelined << " layers and " << stages.getValue() << " stages";
    rows = 1;
    if (failed(checkShape(stack)))
      return failure();
    perChunk = (pipelined + stages - 1) / stages;
    counts.assign(stages, perChunk);
    int64_t missing = stages * perChunk - pipelined;
    for (int64_t i = 0; i < missing; ++i)
      --counts[i % 2 ? i / 2 : stages - 1 - i / 2];
    stack.emitWarning() << pipelined << " layers do not divide into "
                        << stages.getValue() << " stages: " << stages - missing
                        << " have " << perChunk << " layers and " << missing
                        << " have " << perChunk - 1;
    addUnpipelinedLayers(stack);
    return success();
  }

  /// True when unpipelined layers run on all stages, of which there are
  /// several.
  bool isUnpipelined() {
    StackOp stack = *getOperation().getOps<StackOp>().begin();
    return stages > 1 && pipelined < int64_t(stack.getLayers());
  }

  void addUnpipelinedLayers(StackOp stack) {
    if (isUnpipelined())
      counts.push_back(stack.getLayers() - pipelined);
  }

  LogicalResult checkShape(StackOp stack) {
    std::string error = ::rota::pipe::checkShape(shape());
    return error.empty() ? success() : stack.emitError(error);
  }

  ::rota::pipe::Shape shape() {
    return {int(stages), int(rows), int(microbatches), placement,
            isUnpipelined()};
  }

  void makeProgram(StackOp stack) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(getOperation().getBody());
    auto program = ProgramOp::create(
        builder, stack.getLoc(), stack.getSymName(), stages, rows, perChunk,
        microbatches, static_cast<Placement>(placement.getValue()),
        shape().outer);
    builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
    SmallVector<Attribute> chunks;
    int64_t begin = 0;
    for (auto [chunk, count] : llvm::enumerate(counts)) {
      chunks.push_back(makeChunk(stack, chunk, begin, begin + count));
      begin += count;
    }
    ChunksOp::create(builder, stack.getLoc(), builder.getArrayAttr(chunks));
  }

  ChunkAttr makeChunk(StackOp stack, int64_t chunk, int64_t begin,
                      int64_t end) {
    bool last = chunk + 1 == shape().chunks();
    if (last)
      end = stack.getLayers();
    SmallVector<FlatSymbolRefAttr> kinds;
    SmallVector<int64_t> layers;
    for (int64_t layer = begin; layer < end; ++layer) {
      ArrayAttr pattern = stack.getPattern();
      kinds.push_back(cast<FlatSymbolRefAttr>(pattern[layer % pattern.size()]));
      layers.push_back(layer);
    }
    int64_t rank = shape().isUnpipelined(chunk)
                       ? int64_t(ChunkAttr::kAllRanks)
                       : int64_t(shape().rankOf(chunk));
    return ChunkAttr::get(&getContext(), rank, chunk == 0, kinds, layers, last);
  }
};

} // namespace
} // namespace mlir::pipe
