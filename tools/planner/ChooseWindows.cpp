// SPDX-License-Identifier: Apache-2.0
//
// Plans the model for each number of chunks, and for each mode of gathers.
#include "tools/planner/ChooseWindows.h"

#include "ir/rota/model/Model.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

namespace rota {
namespace {

/// Steps that differ by a smaller share take the same time, for each choice.
constexpr double kSameRepeats = 1e-4, kSameGathers = 1e-3;

/// The layers of the model; 0 where it is no model, which later phases report.
int64_t layersOf(const CompilerOptions &options) {
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [](mlir::Diagnostic &) { return; });
  auto built = mlir::rota::buildModel(context, options.model, options.build);
  if (failed(built))
    return 0;
  auto model = mlir::rota::Model::get(*built->module);
  return failed(model) ? 0 : static_cast<int64_t>(model->stack.getLayers());
}

/// A plan with some value of what is chosen.
struct WindowChoice {
  PlanRequest request;
  PolicyPlan plan;

  explicit WindowChoice(const PlanRequest &given) : request(given) {
    if (request.chooseRemat)
      request.compiler.setRemat("full");
  }

  /// False where there is no plan.
  bool make() {
    planPolicy(request, plan);
    return plan.error.empty() && plan.time.timeline > 0;
  }

  /// Whether each rank needs no more bytes than the request has.
  bool fits() const {
    int64_t memory = request.compiler.memory;
    return memory == 0 || llvm::all_of(plan.stages, [&](const StageNeed &need) {
             return need.bytes <= memory;
           });
  }

  /// Whether no other choice makes the step shorter: the rank that waits most
  /// for weights and gradients hardly does.
  bool hidesTransfers() const {
    return llvm::all_of(plan.stages, [&](const StageNeed &need) {
      return need.exposed + plan.time.exchange <=
             kSameGathers * plan.time.timeline;
    });
  }

  /// Whether no other choice can be better.
  bool isEnough() const { return fits() && hidesTransfers(); }

  double seconds() const { return plan.time.timeline + plan.time.exchange; }

  /// Below 0: this plan is better than the other one; 0: they take the same
  /// time.
  int compare(const WindowChoice &other, double same) const {
    if (fits() != other.fits())
      return fits() ? -1 : 1;
    double difference = seconds() - other.seconds();
    if (std::abs(difference) <= same * other.seconds())
      return 0;
    return difference < 0 ? -1 : 1;
  }
};

using Best = std::optional<WindowChoice>;

/// Even numbers of layers for `repeats` chunks; none for one chunk.
std::vector<int64_t> layersOf(int64_t repeats, int64_t layers) {
  if (repeats == 1)
    return {};
  pipe::Shape shape;
  shape.repeats = static_cast<int>(repeats);
  return pipe::splitEvenly(layers, pipe::leastLayers(shape));
}

/// Plans with `repeats` chunks. False where another plan is better.
bool tryRepeats(const PlanRequest &request, int64_t repeats, int64_t layers,
                Best &best) {
  WindowChoice candidate(request);
  auto &schedule = candidate.request.compiler.schedule;
  std::vector<int64_t> counts = layersOf(repeats, layers);
  schedule.repeats = repeats;
  schedule.layersPerStage.assign(counts.begin(), counts.end());
  if (!candidate.make())
    return true;
  int order = best ? candidate.compare(*best, kSameRepeats) : -1;
  if (order > 0 ||
      (order == 0 && candidate.plan.peakBytes >= best->plan.peakBytes))
    return false;
  best = std::move(candidate);
  return true;
}

} // namespace

std::optional<PolicyPlan> chooseRepeats(PlanRequest &request) {
  int64_t layers = layersOf(request.compiler);
  if (layers == 0)
    return std::nullopt;
  Best best;
  tryRepeats(request, layers + 2, layers, best);
  if (!best || !best->isEnough()) {
    tryRepeats(request, 1, layers, best);
    for (int64_t each = 1; each < layers; each *= 2)
      if (!tryRepeats(request, llvm::divideCeil(layers, each), layers, best))
        break;
  }
  if (!best)
    return std::nullopt;
  auto &schedule = request.compiler.schedule;
  const auto &chosen = best->request.compiler.schedule;
  if (chosen.repeats > 1) {
    schedule.repeats = chosen.repeats;
    schedule.layersPerStage = chosen.layersPerStage;
  }
  return std::move(best->plan);
}

void chooseGathers(PlanRequest &request, std::optional<PolicyPlan> known) {
  using pipe::GatherMode;
  std::vector<GatherMode> modes = {GatherMode::PerRepeat, GatherMode::Once};
  if (request.compiler.memory > 0)
    modes.insert(modes.end(), {GatherMode::PerLayer, GatherMode::PerIteration});
  std::optional<GatherMode> knownMode;
  if (known)
    knownMode = pipe::resolvedMode(request.compiler.complete.mode,
                                   known->parts->timeline.shape);
  Best best;
  for (GatherMode mode : modes) {
    WindowChoice candidate(request);
    candidate.request.compiler.complete.mode = mode;
    bool isKnown = mode == knownMode;
    if (isKnown)
      candidate.plan = std::move(*known);
    if ((isKnown || candidate.make()) &&
        (!best || candidate.compare(*best, kSameGathers) < 0))
      best = std::move(candidate);
    if (best && best->isEnough())
      break;
  }
  if (best)
    request.compiler.complete.mode = best->request.compiler.complete.mode;
}

} // namespace rota
