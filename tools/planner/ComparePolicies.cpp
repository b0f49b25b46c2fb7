// SPDX-License-Identifier: Apache-2.0
//
// Runs the compiler down to the memory plan once for each policy.
#include "tools/planner/ComparePolicies.h"

#include "lowering/report/TransferEstimates.h"
#include "passes/differentiate/Remat.h"
#include "passes/pipeline/timeline/SteadyStep.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/train/step/StepBarrier.h"
#include "tools/compiler/Compile.h"
#include "tools/planner/SilentContext.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {
namespace {

void readMemory(const Program &program, PolicyPlan &row) {
  for (const Stage &stage : program.stages) {
    row.peakBytes = std::max(row.peakBytes, stage.arenaBytes);
    row.hostBytes = std::max(row.hostBytes, stage.hostBytes);
    for (const Region &region : stage.regions)
      if (region.use == "activations")
        row.activationBytes = std::max(row.activationBytes, region.bytes);
  }
}

/// The parts of the plan.
std::shared_ptr<PolicyParts> readParts(Plan &plan,
                                       const TransferEstimates &estimates) {
  auto parts = std::make_shared<PolicyParts>();
  parts->costs = estimates.costTable(plan.timeline.shape.chunks());
  parts->layout = std::move(plan.layout);
  parts->layout.program.device = plan.program.device;
  parts->layout.program.accumulationSteps = plan.program.accumulationSteps;
  parts->chunks = std::move(plan.chunks);
  parts->timeline = std::move(plan.timeline);
  return parts;
}

void readChunks(const PolicyParts &parts, PolicyPlan &row) {
  const pipe::Shape &shape = parts.timeline.shape;
  std::vector<int> live = mostLive(parts.timeline);
  for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
    ChunkCost cost = costOf(parts, chunk);
    bool isUnpipelined = shape.isUnpipelined(chunk);
    row.chunks.push_back({isUnpipelined ? -1 : shape.rankOf(chunk),
                          live[chunk] * cost.stash,
                          shape.microbatches * cost.seconds()});
  }
}

/// Waits of a rank of the stage in a timeline inside functions.
double exposedInside(const TransferEstimates &estimates, const Stage &stage,
                     int64_t microbatches) {
  double seconds = 0;
  for (const ActionTemplate &form : stage.templates)
    for (const Call &call : form.calls)
      if (const FunctionCost *cost = estimates.costOf(call.task);
          cost && isCompute(form.kind))
        seconds += double(microbatches) * cost->exposed();
  return seconds;
}

/// The times of all ranks.
void readTimes(const TransferEstimates &estimates, const PolicyParts &parts,
               const PlanRequest &request, PolicyPlan &row) {
  const Program &program = estimates.getProgram();
  auto simulation = pipe::simulate(parts.timeline, parts.costs);
  for (size_t stage = 0; stage < program.stages.size(); ++stage) {
    StageNeed &need = row.stages.emplace_back();
    need.bytes = deviceBytes(program, stage);
    if (!simulation)
      continue;
    const pipe::RankUsage &rank = simulation->ranks[stage];
    const pipe::Exposure &exposed = rank.exposed;
    need.seconds = rank.busy + exposed.offloads + exposed.fetches;
    need.exposed =
        exposed.gathers + exposed.reductions + exposed.sums + exposed.refreshes;
  }
  for (const Stage &stage : program.stages)
    row.exposedInside += exposedInside(estimates, stage, program.microbatches) /
                         double(program.stages.size());
  if (simulation)
    row.time = stepTime(estimates, parts.timeline, parts.costs, *simulation);
  if (hasStepBarrier(program, request.optimizer, request.skip))
    return;
  if (auto steady = pipe::steadyStep(parts.timeline, parts.costs))
    row.steadyStep = steady->time;
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string residualsOf(const PolicyPlan &row) {
  std::vector<std::string> parts;
  const mlir::rota::ResidualSummary &residuals = row.residuals;
  if (!residuals.kept.empty())
    parts.push_back(llvm::join(residuals.kept, ", "));
  if (!residuals.offloaded.empty())
    parts.push_back("in host memory: " + llvm::join(residuals.offloaded, ", "));
  if (residuals.unnamed > 0)
    parts.push_back(fmt::format("{} without names", residuals.unnamed));
  return parts.empty() ? "nothing" : llvm::join(parts, "; ");
}

} // namespace

std::optional<Plan> estimatePlan(CompilerOptions options, std::string &error) {
  options.memory = 0;
  error.clear();
  SilentContext context(error);
  auto model = mlir::rota::buildModel(*context, options.model, options.build);
  Plan plan;
  if (failed(model) || estimateModel(*model, options, plan) != kExitSuccess)
    return std::nullopt;
  error.clear();
  return plan;
}

void planPolicy(const PlanRequest &request, PolicyPlan &row) {
  row.policy = request.compiler.differentiate.remat;
  std::optional<Plan> made = estimatePlan(request.compiler, row.error);
  if (made)
    readPlan(request, *made, row);
}

void readPlan(const PlanRequest &request, Plan &plan, PolicyPlan &row) {
  row.residuals = std::move(plan.residuals);
  readMemory(plan.program, row);
  TransferEstimates estimates(plan.costs, plan.program, plan.machine);
  row.parts = readParts(plan, estimates);
  readTimes(estimates, *row.parts, request, row);
  readChunks(*row.parts, row);
  row.operations = stepOperations(plan.program, plan.costs);
}

void countRecomputed(PolicyPlan &row, const PolicyPlan &everything) {
  if (everything.operations > 0 && row.error.empty())
    row.recomputed = row.operations / everything.operations - 1;
}

std::vector<PolicyPlan> comparePolicies(const PlanRequest &request) {
  std::vector<std::string> policies;
  for (llvm::StringRef name : mlir::rota::policyNames())
    policies.push_back(name.str());
  const std::string &own = request.compiler.differentiate.remat;
  if (!request.chooseRemat && !llvm::is_contained(policies, own))
    policies.push_back(own);
  std::vector<PolicyPlan> rows;
  for (const std::string &policy : policies) {
    PolicyPlan &row = rows.emplace_back();
    row.chosen = !request.chooseRemat && policy == own;
    PlanRequest other = request;
    other.compiler.complete.policy.clear();
    other.compiler.setRemat(policy);
    planPolicy(other, row);
    countRecomputed(row, rows.front());
  }
  return rows;
}

std::string describePolicies(const std::vector<PolicyPlan> &rows) {
  size_t width = 0;
  for (const PolicyPlan &row : rows)
    width = std::max(width, row.policy.size());
  std::string text = fmt::format(
      "rematerialization policies (MiB of the rank that needs most, operations "
      "computed again)\n  {:<{}}  {:>10}  {:>11}  {:>10}  {:>10}  {}\n",
      "policy", width, "peak", "activations", "offloaded", "recomputed",
      "layers keep");
  for (const PolicyPlan &row : rows) {
    text +=
        fmt::format("{} {:<{}}  ", row.chosen ? '*' : ' ', row.policy, width);
    text += row.error.empty()
                ? fmt::format("{:>10}  {:>11}  {:>10}  {:>8.1f} %  {}\n",
                              mebibytes(row.peakBytes),
                              mebibytes(row.activationBytes),
                              mebibytes(row.hostBytes), 100 * row.recomputed,
                              residualsOf(row))
                : "no plan: " + row.error + "\n";
  }
  return text;
}

} // namespace rota
