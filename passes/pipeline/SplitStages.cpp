// SPDX-License-Identifier: Apache-2.0
//
// Divides the stack's layers into chunks. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/LayerSplit.h"
#include "runtime/text/Text.h"

#include "mlir/IR/Remarks.h"

#include <numeric>

namespace mlir::pipe {

#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/pipeline/Passes.h.inc"

namespace {

using ::mlir::rota::StackOp;
using ::rota::counted;

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
  int64_t pipelined = 0, rows = 0; // layers; R once derived
  SmallVector<int64_t> counts;     // layers of each chunk

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

  /// Derives R and the layers of each chunk.
  LogicalResult deriveSizes(StackOp stack) {
    int64_t layers = stack.getLayers();
    pipelined = pipelineLayers ? int64_t(pipelineLayers) : layers;
    if (pipelined > layers)
      return stack.emitError()
             << "'pipeline-layers': expected at most as many pipelined layers "
                "as layers, got "
             << pipelined << " and " << layers;
    rows = repeats ? int64_t(repeats) : 1;
    if (failed(!layersPerStage.empty() ? takeGivenLayers(stack)
               : layersPerChunk        ? divideByChunk(stack)
                                       : divideEvenly(stack)))
      return failure();
    if (isUnpipelined())
      counts.push_back(layers - pipelined);
    else
      counts.back() += layers - pipelined;
    return success();
  }

  /// Chunks of L layers, so that S * R * L is the number of pipelined layers.
  LogicalResult divideByChunk(StackOp stack) {
    int64_t unit = stages * layersPerChunk;
    if (pipelined % unit != 0)
      return stack.emitError()
             << "'layers-per-chunk': expected stages * layers per chunk to "
                "divide the pipelined layers, got "
             << unit << " (" << stages.getValue() << " * "
             << layersPerChunk.getValue() << ") and " << pipelined;
    if (!repeats)
      rows = pipelined / unit;
    if (unit * rows != pipelined)
      return stack.emitError()
             << "'repeats': expected stages * repeats * layers per chunk to be "
                "the number of pipelined layers, got "
             << unit * rows << " (" << stages.getValue() << " * " << rows
             << " * " << layersPerChunk.getValue() << ") and " << pipelined;
    counts.assign(stages * rows, layersPerChunk);
    return checkShape(stack);
  }

  LogicalResult divideEvenly(StackOp stack) {
    if (failed(checkShape(stack)))
      return failure();
    int64_t chunks = stages * rows;
    std::vector<int64_t> least = ::rota::pipe::leastLayers(shape());
    bool isEven = split == ::rota::pipe::LayerSplit::Even;
    if (pipelined < sumOf(least) ||
        (isEven && pipelined < chunks && pipelined + 2 != chunks))
      return stack.emitError()
             << "'" << (rows > 1 ? "repeats" : "stage")
             << "': expected a pipelined layer for each chunk at least, or for "
             << (isEven ? "each but the first and the last"
                        : "each without the embedding and the loss")
             << ", got " << counted(pipelined, "layer") << " and "
             << counted(chunks, "chunk") << " (" << stages.getValue() << " * "
             << rows << ")";
    llvm::append_range(counts, ::rota::pipe::splitEvenly(pipelined, least));
    int64_t most = llvm::divideCeil(pipelined, chunks);
    int64_t missing = chunks * most - pipelined;
    // A rank that has all chunks waits for none of them.
    if (missing && isEven && stages > 1)
      stack.emitWarning() << pipelined << " layers do not divide into "
                          << chunks << " chunks: " << chunks - missing
                          << (chunks - missing == 1 ? " has " : " have ")
                          << most << " and " << missing
                          << (missing == 1 ? " has " : " have ")
                          << (most > 1 ? std::to_string(most - 1) : "none");
    return success();
  }

  /// Takes the layers of each stage, divided evenly over its chunks, or of each
  /// chunk.
  LogicalResult takeGivenLayers(StackOp stack) {
    if (layersPerChunk)
      return stack.emitError("'layers-per-stage': expected no "
                             "'layers-per-chunk' beside it, got ")
             << layersPerChunk.getValue();
    if (failed(checkShape(stack)))
      return failure();
    int64_t chunks = stages * rows, given = layersPerStage.size();
    if (given != stages && given != chunks)
      return stack.emitError(
                 "'layers-per-stage': expected a number for each of "
                 "the ")
             << counted(stages.getValue(), "stage")
             << (rows > 1 ? " or of the " + counted(chunks, "chunk") : "")
             << ", got " << given;
    int64_t sum = 0;
    for (int64_t count : layersPerStage) {
      if (count < 0 || count > pipelined)
        return stack.emitError("'layers-per-stage': expected 0 to ")
               << counted(pipelined, "layer") << ", got " << count;
      sum += count;
    }
    if (sum != pipelined)
      return stack.emitError("'layers-per-stage': expected the sum to be the "
                             "number of pipelined layers, got ")
             << sum << " and " << pipelined;
    counts.resize(chunks);
    return given == chunks ? takeChunks(stack) : divideStages(stack);
  }

  /// The given numbers are those of chunks.
  LogicalResult takeChunks(StackOp stack) {
    for (auto [chunk, least] :
         llvm::enumerate(::rota::pipe::leastLayers(shape()))) {
      counts[chunk] = layersPerStage[chunk];
      if (counts[chunk] < least)
        return stack.emitError("'layers-per-stage': expected a layer at least "
                               "in chunk ")
               << chunk
               << ", which has neither the embedding nor the loss, got none";
    }
    return success();
  }

  /// The given numbers are those of stages.
  LogicalResult divideStages(StackOp stack) {
    std::vector<int64_t> least = ::rota::pipe::leastLayers(shape());
    for (int64_t stage = 0; stage < stages; ++stage) {
      std::vector<int64_t> leastOfRows;
      for (int64_t row = 0; row < rows; ++row)
        leastOfRows.push_back(least[shape().chunkOf(stage, row)]);
      if (layersPerStage[stage] < sumOf(leastOfRows))
        return stack.emitError("'layers-per-stage': expected at least ")
               << counted(sumOf(leastOfRows), "layer") << " in stage " << stage
               << ", for the chunks that have neither the embedding nor the "
                  "loss, got "
               << layersPerStage[stage];
      for (auto [row, count] : llvm::enumerate(
               ::rota::pipe::splitEvenly(layersPerStage[stage], leastOfRows)))
        counts[shape().chunkOf(stage, row)] = count;
    }
    return success();
  }

  static int64_t sumOf(ArrayRef<int64_t> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), int64_t(0));
  }

  /// True when unpipelined layers run on all stages, of which there are
  /// several.
  bool isUnpipelined() {
    StackOp stack = *getOperation().getOps<StackOp>().begin();
    return stages > 1 && pipelined < int64_t(stack.getLayers());
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
        builder, stack.getLoc(), stack.getSymName(), stages, rows, microbatches,
        static_cast<Placement>(placement.getValue()), /*parts=*/IntegerAttr(),
        shape().hasUnpipelined);
    builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
    ChunksOp::create(builder, stack.getLoc(),
                     makeChunks(stack, shape(), counts));
  }
};

} // namespace
} // namespace mlir::pipe
