// SPDX-License-Identifier: Apache-2.0
//
// Plans the model for each number of chunks, and for each mode of gathers.
#include "tools/planner/ChooseWindows.h"

#include "ir/rota/model/Model.h"
#include "tools/planner/ComparePolicies.h"

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
    return plan.error.empty() && plan.step > 0;
  }

  /// Whether each rank needs no more bytes than the request has.
  bool fits() const {
    int64_t memory = request.compiler.memory;
    return memory == 0 || llvm::all_of(plan.stages, [&](const auto &need) {
             return need.bytes <= memory;
           });
  }

  /// Whether no other choice makes the step shorter: the rank that waits most
  /// for weights and gradients hardly does.
  bool hidesTransfers() const {
    auto simulation = pipe::simulate(plan.parts->timeline, plan.parts->costs);
    return simulation &&
           llvm::all_of(simulation->ranks, [&](const pipe::RankUsage &rank) {
             return rank.exposed.gathers + rank.exposed.reductions +
                        rank.exposed.sums + rank.exposed.refreshes +
                        plan.stepEnd <=
                    kSameGathers * plan.step;
           });
  }

  double seconds() const { return plan.step + plan.stepEnd; }

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

void chooseRepeats(PlanRequest &request) {
  int64_t layers = layersOf(request.compiler);
  if (layers == 0)
    return;
  Best best;
  tryRepeats(request, layers + 2, layers, best);
  if (!best || !best->fits() || !best->hidesTransfers()) {
    tryRepeats(request, 1, layers, best);
    for (int64_t each = 1; each < layers; each *= 2)
      if (!tryRepeats(request, llvm::divideCeil(layers, each), layers, best))
        break;
  }
  if (!best || best->request.compiler.schedule.repeats <= 1)
    return;
  auto &schedule = request.compiler.schedule;
  schedule.repeats = best->request.compiler.schedule.repeats;
  schedule.layersPerStage = best->request.compiler.schedule.layersPerStage;
}

void chooseGathers(PlanRequest &request) {
  using pipe::GatherMode;
  std::vector<GatherMode> modes = {GatherMode::PerRepeat, GatherMode::Once};
  if (request.compiler.memory > 0)
    modes.insert(modes.end(), {GatherMode::PerLayer, GatherMode::PerIteration});
  Best best;
  for (GatherMode mode : modes) {
    WindowChoice candidate(request);
    candidate.request.compiler.complete.mode = mode;
    if (candidate.make() &&
        (!best || candidate.compare(*best, kSameGathers) < 0))
      best = std::move(candidate);
    if (best && best->fits() && best->hidesTransfers())
      break;
  }
  if (best)
    request.compiler.complete.mode = best->request.compiler.complete.mode;
}

} // namespace rota
