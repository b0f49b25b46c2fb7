// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/Assessment.h"

#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/LayerSplit.h"
#include "passes/pipeline/timeline/SteadyStep.h"

#include <algorithm>

namespace rota {
namespace {

/// The parts of each chunk.
std::vector<PartCost> chunksOf(const PlanCandidate &candidate,
                               const LayerCosts &costs) {
  std::vector<int64_t> counts =
      pipe::splitEvenly(costs.layers(), pipe::leastLayers(candidate.shape()));
  std::vector<PartCost> chunks;
  size_t begin = 0, end = 1;
  for (int64_t count : counts) {
    end += size_t(count);
    bool isLast = chunks.size() + 1 == counts.size();
    chunks.push_back(costs.sums[isLast ? end + 1 : end] - costs.sums[begin]);
    begin = end;
  }
  return chunks;
}

/// The chunks and sums of each stage.
class Stages {
public:
  Stages(const PlanCandidate &candidate, const LayerCosts &costs,
         const StepConditions &conditions)
      : candidate(candidate), costs(costs), machine(conditions.machine),
        hasFill(conditions.hasBarrier || candidate.accumulate > 1),
        shape(candidate.shape()), chunks(chunksOf(candidate, costs)) {
    send = shape.stages > 1 ? machine.secondsOfMessage(
                                  costs.messageBytes,
                                  group({{candidate.stages, stageStride()}}))
                            : 0;
    for (int stage = 0; stage < shape.stages; ++stage) {
      PartCost &sum = sums.emplace_back();
      for (int row = 0; row < shape.repeats; ++row)
        sum += chunks[shape.chunkOf(stage, row)];
    }
    if (candidate.split == pipe::LayerSplit::Balanced)
      useMeans();
  }

  /// The bound of time for one pass of the timeline.
  double leastPass() const {
    double fill = 0, drain = 0, least = 0;
    for (int stage = 0; stage < shape.stages; ++stage) {
      least = std::max(least, fill + drain +
                                  shape.microbatches * sums[stage].seconds());
      if (candidate.split == pipe::LayerSplit::Balanced || !hasFill)
        continue; // no chunk is known, or nothing is filled
      fill += chunks[stage].forward + send;
      if (!candidate.splitBackward)
        drain += chunks[stage].turn() + send;
    }
    return std::max(least, gatherSeconds(false));
  }

  /// Bytes that a stage has all the time.
  double staticBytes(int stage) const {
    const PartCost &sum = sums[stage];
    double fsdp = double(candidate.fsdp);
    double optimizer = candidate.shardOptimizer
                           ? sum.wholeOptimizer * double(candidate.stages) /
                                 double(candidate.ranks())
                           : sum.optimizer / fsdp;
    return (sum.stored + sum.gradients) / fsdp + optimizer + costs.scratch;
  }

  /// Likewise, with gathered weights and their gradients.
  double windowBytes(int stage) const {
    if (candidate.fsdp == 1)
      return 0;
    const PartCost &sum = sums[stage];
    double whole = sum.stored + sum.gradients;
    switch (candidate.gathers) {
    case pipe::GatherMode::PerRepeat:
      return whole * std::min(1.0, 2.0 / shape.repeats);
    case pipe::GatherMode::PerLayer:
      return whole * std::min(1.0, 2.0 / layersOfStage());
    default:
      return whole;
    }
  }

  /// Seconds that transfers of weights and gradients are likely to expose in a
  /// step.
  double exposedSeconds(double pass) const {
    double worst = 0;
    for (int stage = 0; stage < shape.stages; ++stage)
      worst = std::max(worst, exposedGathers(stage) + exposedSums(stage));
    double stream = gatherSeconds(true);
    return worst + std::max(0.0, stream - pass);
  }

  const PlanCandidate &candidate;
  const LayerCosts &costs;
  const mlir::rota::Machine &machine;
  bool hasFill; // no other step's work is in the pipeline at its begin and end
  pipe::Shape shape;
  std::vector<PartCost> chunks, sums; // sums: by stage
  double send = 0;

private:
  using Group = mlir::rota::MeshGroup;

  static Group group(std::initializer_list<Group::Part> parts) {
    Group group;
    for (const Group::Part &part : parts)
      if (part.ranks > 1)
        group.parts.push_back(part);
    return group;
  }

  int64_t stageStride() const {
    return candidate.fsdp * candidate.layer.ranks();
  }

  double layersOfStage() const {
    return std::max(1.0, double(costs.layers()) / shape.stages);
  }

  void useMeans() {
    PartCost all = costs.all();
    double stages = shape.stages;
    PartCost mean;
    for (double PartCost::*amount :
         {&PartCost::forward, &PartCost::backward, &PartCost::backwardInput,
          &PartCost::backwardWeight, &PartCost::stash, &PartCost::cotangents,
          &PartCost::stored, &PartCost::gradients, &PartCost::optimizer,
          &PartCost::wholeOptimizer, &PartCost::tensors})
      mean.*amount = all.*amount / stages;
    std::fill(sums.begin(), sums.end(), mean);
  }

  /// Seconds of a ring in which `bytes` of so many tensors are gathered, or
  /// summed so that each rank has its part.
  double ring(double bytes, const Group &group, double tensors) const {
    auto ranks = double(group.ranks());
    if (ranks <= 1 || bytes == 0)
      return 0;
    double each = bytes * (ranks - 1) / ranks / tensors;
    return tensors * machine.secondsOfCollective(each, group);
  }

  Group fsdpGroup() const {
    return group({{candidate.fsdp, candidate.layer.ranks()}});
  }
  double gather(const PartCost &part) const {
    return ring(part.stored, fsdpGroup(), part.tensors);
  }
  double reduce(const PartCost &part) const {
    return ring(part.gradients, fsdpGroup(), part.tensors);
  }

  /// Seconds in one pass that the gathers of a stage take at least, or, for an
  /// estimate, those that take longest.
  double gatherSeconds(bool isEstimate) const {
    if (candidate.fsdp == 1)
      return 0;
    bool isPerUse = candidate.gathers == pipe::GatherMode::PerLayer ||
                    candidate.gathers == pipe::GatherMode::PerIteration;
    double seconds = 0;
    for (const PartCost &sum : sums) {
      double times = isPerUse ? shape.microbatches : 1;
      double gathers = times * (isPerUse && isEstimate ? 2 : 1) * gather(sum);
      seconds = std::max({seconds, gathers, times * reduce(sum)});
    }
    // Small parameters may be whole on every rank.
    return seconds * (isEstimate ? 1 : 0.95);
  }

  double exposedGathers(int stage) const {
    if (candidate.fsdp == 1)
      return 0;
    double share = 1.0 / shape.repeats;
    if (candidate.gathers == pipe::GatherMode::PerLayer)
      share = 1 / layersOfStage();
    double passes = candidate.gathers == pipe::GatherMode::PerLayer
                        ? 1
                        : candidate.accumulate;
    return share * passes * (gather(sums[stage]) + reduce(sums[stage]));
  }

  /// Sums over ranks with the same parameters, and gathers of updated weights.
  double exposedSums(int stage) const {
    const LayerDivision &layer = candidate.layer;
    Group replicas = group({{candidate.data, candidate.stages * stageStride()},
                            {layer.context, layer.sequence * layer.tensor}});
    const PartCost &sum = sums[stage];
    double gradients = sum.gradients / double(candidate.fsdp);
    double refreshed = candidate.shardOptimizer
                           ? sum.stored / double(candidate.fsdp)
                           : gradients;
    return (ring(gradients, replicas, sum.tensors) +
            ring(refreshed, replicas, sum.tensors)) /
           shape.repeats;
  }
};

/// The costs of actions for the simulator.
pipe::CostTable tableOf(const Stages &stages) {
  pipe::CostTable table;
  for (const PartCost &chunk : stages.chunks)
    table.chunks.push_back({chunk.forward, chunk.backward, chunk.backwardInput,
                            chunk.backwardWeight});
  if (stages.candidate.splitBackward && stages.costs.all().backwardInput == 0)
    // Costs of whole backwards: a split takes as long at least.
    for (auto &chunk : table.chunks) {
      double weights = std::min(chunk[0], chunk[1] / 2);
      chunk = {chunk[0], 0, chunk[1] - weights, weights};
    }
  table.send = stages.send;
  return table;
}

/// Seconds of a pass of the timeline; nothing where it does not complete.
std::optional<double> passOf(const pipe::Timeline &timeline,
                             const Stages &stages) {
  if (!stages.hasFill) {
    auto steady = pipe::steadyStep(timeline, tableOf(stages));
    return steady ? std::optional(steady->time) : std::nullopt;
  }
  auto simulation = pipe::simulate(timeline, tableOf(stages));
  return simulation ? std::optional(simulation->makespan) : std::nullopt;
}

/// The most bytes of activations that a rank holds at a time.
double heldBytes(const std::vector<Action> &row,
                 const std::vector<PartCost> &chunks) {
  double held = 0, most = 0;
  for (const Action &action : row) {
    const PartCost &chunk = chunks[action.chunk];
    if (action.kind == ActionKind::Forward)
      held += chunk.stash;
    else if (action.kind == ActionKind::BackwardInput)
      held += chunk.cotangents;
    most = std::max(most, held);
    if (action.kind == ActionKind::Backward)
      held -= chunk.stash;
    else if (action.kind == ActionKind::BackwardWeight)
      held -= chunk.stash + chunk.cotangents;
  }
  return most;
}

} // namespace

Assessment assess(const PlanCandidate &candidate, const LayerCosts &costs,
                  const StepConditions &conditions) {
  Stages stages(candidate, costs, conditions);
  Assessment result;
  double pass = stages.leastPass();
  auto steps = double(candidate.accumulate);
  result.leastSeconds = steps * pass;
  result.seconds = steps * pass + stages.exposedSeconds(pass);
  for (int stage = 0; stage < stages.shape.stages; ++stage) {
    double least = stages.staticBytes(stage) + stages.sums[stage].stash;
    result.leastBytes = std::max(result.leastBytes, least);
    result.bytes = std::max(result.bytes, least + stages.windowBytes(stage));
  }
  return result;
}

std::optional<Assessment> simulateCandidate(const PlanCandidate &candidate,
                                            const LayerCosts &costs,
                                            const StepConditions &conditions) {
  pipe::ScheduleRequest request;
  request.shape = candidate.shape();
  request.splitBackward = candidate.splitBackward;
  std::string error;
  if (pipe::isSearch(candidate.schedule))
    return assess(candidate, costs, conditions);
  auto timeline = pipe::makeTimeline(candidate.schedule, request, error);
  if (!timeline)
    return std::nullopt;
  Stages stages(candidate, costs, conditions);
  Assessment result = assess(candidate, costs, conditions);
  std::optional<double> pass = passOf(*timeline, stages);
  if (!pass)
    return std::nullopt;
  auto steps = double(candidate.accumulate);
  if (candidate.split == pipe::LayerSplit::Even) {
    result.leastSeconds = std::max(result.leastSeconds, steps * *pass);
    for (int stage = 0; stage < stages.shape.stages; ++stage) {
      double bytes = stages.staticBytes(stage) +
                     heldBytes(timeline->ranks[stage], stages.chunks);
      result.leastBytes = std::max(result.leastBytes, bytes);
      result.bytes = std::max(result.bytes, bytes + stages.windowBytes(stage));
    }
  }
  result.seconds = steps * *pass + stages.exposedSeconds(*pass);
  return result;
}

} // namespace rota
