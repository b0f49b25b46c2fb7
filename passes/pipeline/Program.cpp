// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/Program.h"

#include "ir/rota/cost/Machine.h"
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/sharding/Sharding.h"
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

::rota::pipe::PartWork costOf(const ::mlir::rota::TrainingWork &work,
                              double scale) {
  return {scale * work.forward, scale * work.input, scale * work.weight};
}

::rota::pipe::PartCosts
partCosts(::mlir::rota::StackOp stack, const ::rota::pipe::PartWork &embed,
          const ::rota::pipe::PartWork &loss,
          function_ref<::rota::pipe::PartWork(StringRef kind)> layerCost) {
  SmallVector<::rota::pipe::PartWork> pattern; // costs of its kinds
  for (auto kind : stack.getPattern().getAsRange<FlatSymbolRefAttr>())
    pattern.push_back(layerCost(kind.getValue()));
  ::rota::pipe::PartCosts costs;
  costs.embed = embed;
  costs.loss = loss;
  for (uint64_t layer = 0; layer < stack.getLayers(); ++layer)
    costs.layers.push_back(pattern[layer % pattern.size()]);
  return costs;
}

/// The activation that enters the first kind of layer.
static Value activationOf(ProgramOp program) {
  using namespace ::mlir::rota;
  auto layer = *program.getStackOp().getBody().getOps<LayerOp>().begin();
  auto forward = functionIn(layer, ModelPart::Layer, FunctionKind::Forward);
  return forward.getArgument(0);
}

namespace {
/// The unit of costs: operations of the largest products of a machine.
class WorkUnit {
public:
  explicit WorkUnit(ProgramOp program)
      : machine(::mlir::rota::machineOf(program)),
        perSecond(machine.peakOf(elementTypeOf(program)) *
                  machine.productEfficiency) {}

  double of(double seconds) const { return seconds * perSecond; }
  /// The cost of a function of `scope`, times `calls`; 0 where there is none.
  ::rota::pipe::PartWork of(Operation *scope, ::mlir::rota::ModelPart part,
                            double calls = 1) const {
    auto function = ::mlir::rota::functionIn(
        scope, part, ::mlir::rota::FunctionKind::Forward);
    if (!function)
      return {};
    return costOf(
        ::mlir::rota::trainingWork(
            function, [&](Operation *op) { return machine.secondsOfOp(op); }),
        calls * perSecond);
  }
  const ::mlir::rota::Machine &getMachine() const { return machine; }

private:
  /// The type of activations between layers.
  static Type elementTypeOf(ProgramOp program) {
    return getElementTypeOrSelf(activationOf(program).getType());
  }

  ::mlir::rota::Machine machine;
  double perSecond;
};
} // namespace

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
  WorkUnit unit(program);
  return partCosts(stack, unit.of(module, ModelPart::Embed),
                   unit.of(module, ModelPart::Loss, lossCalls(module, stack)),
                   [&](StringRef kind) {
                     return unit.of(SymbolTable::lookupSymbolIn(stack, kind),
                                    ModelPart::Layer);
                   });
}

double messageBytes(ProgramOp program) {
  return double(::mlir::rota::bytesOfTensor(activationOf(program)));
}

::rota::pipe::CostTable costsOf(ProgramOp program,
                                const std::vector<int64_t> &layers) {
  ::rota::pipe::CostTable table =
      ::rota::pipe::tableOf(operationsOf(program), layers);
  bool hasCosts = llvm::any_of(
      table.chunks, [](const auto &costs) { return costs.front() > 0; });
  if (!hasCosts)
    return {};
  using namespace ::mlir::rota;
  auto stages = AxisRefAttr::get(program.getContext(), MeshAxis::Stage);
  WorkUnit unit(program);
  table.send = unit.of(unit.getMachine().secondsOfMessage(
      messageBytes(program), groupOf(stages, meshOf(program))));
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
