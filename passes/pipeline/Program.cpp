// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/Program.h"

#include "ir/rota/cost/AssumedSpeed.h"
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/model/Model.h"
#include "passes/pipeline/timeline/SteadyStep.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"

namespace mlir::pipe {

ProgramOp findProgram(ModuleOp module) {
  auto programs = module.getOps<ProgramOp>();
  int64_t count = std::distance(programs.begin(), programs.end());
  if (count == 1)
    return *programs.begin();
  module.emitError() << "expected one 'pipe.program' in the module, got "
                     << count;
  return {};
}

TimelineOp findTimeline(ModuleOp module) {
  ProgramOp program = findProgram(module);
  if (!program)
    return {};
  TimelineOp timeline = program.getTimeline();
  if (!timeline)
    program.emitError("expected a 'pipe.timeline' in the program, got none");
  return timeline;
}

LogicalResult verifyTimelineOp(TimelineOp timeline) {
  constexpr size_t kMostShown = 20;
  auto violations = ::rota::pipe::verifyTimeline(timeline.read());
  for (size_t i = 0; i < violations.size() && i < kMostShown; ++i)
    timeline.emitError() << "timeline '" << timeline.getSchedule() << "', "
                         << violations[i].str();
  if (violations.size() > kMostShown)
    timeline.emitError() << "timeline '" << timeline.getSchedule() << "', and "
                         << violations.size() - kMostShown << " more";
  return success(violations.empty());
}

ArrayAttr makeChunks(::mlir::rota::StackOp stack,
                     const ::rota::pipe::Shape &shape,
                     ArrayRef<int64_t> counts) {
  MLIRContext *context = stack.getContext();
  ArrayAttr pattern = stack.getPattern();
  SmallVector<Attribute> chunks;
  int64_t layer = 0;
  for (auto [number, count] : llvm::enumerate(counts)) {
    int64_t chunk = number;
    SmallVector<FlatSymbolRefAttr> kinds;
    SmallVector<int64_t> layers;
    for (int64_t end = layer + count; layer < end; ++layer) {
      kinds.push_back(cast<FlatSymbolRefAttr>(pattern[layer % pattern.size()]));
      layers.push_back(layer);
    }
    int64_t rank = shape.isUnpipelined(chunk) ? int64_t(ChunkAttr::kAllRanks)
                                              : int64_t(shape.rankOf(chunk));
    chunks.push_back(ChunkAttr::get(context, rank, chunk == 0, kinds, layers,
                                    chunk + 1 == shape.chunks()));
  }
  return ArrayAttr::get(context, chunks);
}

std::vector<int64_t> layersOf(ProgramOp program) {
  std::vector<int64_t> counts;
  for (auto chunk : program.getChunks().getChunks().getAsRange<ChunkAttr>())
    counts.push_back(chunk.getLayers().size());
  return counts;
}

std::vector<int64_t> layersOf(ProgramOp program,
                              const ::rota::pipe::Shape &shape) {
  std::vector<int64_t> own = layersOf(program);
  if (int64_t(own.size()) == int64_t(shape.chunks()))
    return own;
  std::vector<int64_t> least = ::rota::pipe::leastLayers(shape);
  int64_t pipelined = program.getStackOp().getLayers() -
                      (shape.hasUnpipelined ? own.back() : 0);
  if (pipelined < int64_t(least.size()))
    return {};
  std::vector<int64_t> layers = ::rota::pipe::splitEvenly(pipelined, least);
  if (shape.hasUnpipelined)
    layers.push_back(own.back());
  return layers;
}

::rota::pipe::PartCosts
partCosts(::mlir::rota::StackOp stack, double embed, double loss,
          function_ref<double(StringRef kind)> layerCost) {
  SmallVector<double> pattern; // costs of its kinds
  for (auto kind : stack.getPattern().getAsRange<FlatSymbolRefAttr>())
    pattern.push_back(layerCost(kind.getValue()));
  ::rota::pipe::PartCosts costs;
  costs.embed = embed;
  costs.loss = loss;
  for (uint64_t layer = 0; layer < stack.getLayers(); ++layer)
    costs.layers.push_back(pattern[layer % pattern.size()]);
  return costs;
}

/// Operations of a function of `scope`; none where there is none.
static double flopsOf(Operation *scope, ::mlir::rota::ModelPart part) {
  auto function = ::mlir::rota::functionIn(scope, part,
                                           ::mlir::rota::FunctionKind::Forward);
  return function ? ::mlir::rota::Model::flopsOf(function) : 0.0;
}

/// Calls of the loss in a microbatch; as Model::lossCalls, for modules whose
/// other ends may be missing.
static double lossCalls(ModuleOp module, ::mlir::rota::StackOp stack) {
  using namespace ::mlir::rota;
  auto elements = [](func::FuncOp function) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes().front());
    return double(type.getNumElements());
  };
  auto loss = functionIn(module, ModelPart::Loss, FunctionKind::Forward);
  auto layer = *stack.getBody().getOps<LayerOp>().begin();
  auto forward = functionIn(layer, ModelPart::Layer, FunctionKind::Forward);
  return loss ? elements(forward) / elements(loss) : 0.0;
}

::rota::pipe::PartCosts operationsOf(ProgramOp program) {
  using ::mlir::rota::ModelPart;
  auto module = program->getParentOfType<ModuleOp>();
  ::mlir::rota::StackOp stack = program.getStackOp();
  return partCosts(stack, flopsOf(module, ModelPart::Embed),
                   lossCalls(module, stack) * flopsOf(module, ModelPart::Loss),
                   [&](StringRef kind) {
                     return flopsOf(SymbolTable::lookupSymbolIn(stack, kind),
                                    ModelPart::Layer);
                   });
}

double messageBytes(ProgramOp program) {
  using namespace ::mlir::rota;
  auto layer = *program.getStackOp().getBody().getOps<LayerOp>().begin();
  auto forward = functionIn(layer, ModelPart::Layer, FunctionKind::Forward);
  return double(bytesOfTensor(forward.getArgument(0)));
}

::rota::pipe::CostTable costsOf(ProgramOp program,
                                const std::vector<int64_t> &layers) {
  ::rota::pipe::CostTable table =
      ::rota::pipe::tableOf(operationsOf(program), layers);
  bool hasCosts = llvm::any_of(
      table.chunks, [](const auto &costs) { return costs.front() > 0; });
  if (!hasCosts)
    return {};
  ::mlir::rota::AssumedSpeed speed;
  table.send =
      speed.secondsOfTransfer(messageBytes(program)) * speed.flopsPerSecond;
  return table;
}

Bubbles bubblesOf(ProgramOp program, const ::rota::pipe::Timeline &timeline,
                  const ::rota::pipe::PartCosts &costs) {
  ::rota::pipe::CostTable table =
      ::rota::pipe::tableOf(costs, layersOf(program));
  auto simulation = ::rota::pipe::simulate(timeline, table);
  auto steady = ::rota::pipe::steadyStep(timeline, table);
  if (!simulation || !steady)
    return {};
  return {simulation->bubble, steady->bubble};
}

} // namespace mlir::pipe
