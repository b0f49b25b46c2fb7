// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/ChooseRepeats.h"

#include "ir/rota/model/Model.h"
#include "tools/planner/ComparePolicies.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

namespace rota {
namespace {

/// Steps that differ by less take the same time.
constexpr double kSameStep = 1e-3;

/// The layers of the model; 0 where it is no model, which later phases report.
int64_t layersOf(const CompilerOptions &options) {
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [](mlir::Diagnostic &) { return; });
  auto built =
      mlir::rota::buildModel(context, options.model, options.build);
  if (failed(built))
    return 0;
  auto model = mlir::rota::Model::get(*built->module);
  return failed(model) ? 0 : static_cast<int64_t>(model->stack.getLayers());
}

/// A plan with a number of chunks.
struct Candidate {
  int64_t repeats = 1;
  std::vector<int64_t> layers; // of each chunk
  PolicyPlan plan;

  /// Whether the rank needs at most `memory`; 0: any number of bytes.
  bool fits(int64_t memory) const {
    return memory == 0 || plan.stages.front().bytes <= memory;
  }

  bool isBetterThan(const Candidate &other, int64_t memory) const {
    if (fits(memory) != other.fits(memory))
      return fits(memory);
    double difference = plan.step - other.plan.step;
    return std::abs(difference) > kSameStep * other.plan.step
               ? difference < 0
               : plan.peakBytes < other.plan.peakBytes;
  }
};

void divide(CompilerOptions &compiler, const Candidate &candidate) {
  compiler.schedule.repeats = candidate.repeats;
  compiler.schedule.layersPerStage.assign(candidate.layers.begin(),
                                          candidate.layers.end());
}

class Comparison {
public:
  explicit Comparison(const PlanRequest &given) : request(given) {
    // A policy that is open is chosen for the chunks that are chosen here, and
    // makes them fit.
    if (request.chooseRemat) {
      request.compiler.memory = 0;
      request.compiler.setRemat("full");
    }
  }

  /// The best plan; nothing where none can be made.
  std::optional<Candidate> run(int64_t layers) {
    compare(1, layers);
    compare(layers + 2, layers);
    for (int64_t each = 1; each < layers; each *= 2)
      if (!compare(llvm::divideCeil(layers, each), layers))
        break;
    return best;
  }

private:
  /// Plans with `repeats` chunks of even numbers of layers. False where
  /// another plan is better.
  bool compare(int64_t repeats, int64_t layers) {
    Candidate candidate;
    candidate.repeats = repeats;
    pipe::Shape shape;
    shape.repeats = static_cast<int>(repeats);
    if (repeats > 1)
      candidate.layers = pipe::splitEvenly(layers, pipe::leastLayers(shape));
    PlanRequest other = request;
    divide(other.compiler, candidate);
    planPolicy(other, candidate.plan);
    if (!candidate.plan.error.empty() || candidate.plan.step <= 0)
      return true;
    if (best && !candidate.isBetterThan(*best, request.compiler.memory))
      return repeats == layers;
    best = std::move(candidate);
    return true;
  }

  PlanRequest request;
  std::optional<Candidate> best;
};

} // namespace

void chooseRepeats(PlanRequest &request) {
  int64_t layers = layersOf(request.compiler);
  if (layers == 0)
    return;
  std::optional<Candidate> best = Comparison(request).run(layers);
  if (best && best->repeats > 1)
    divide(request.compiler, *best);
}

} // namespace rota
