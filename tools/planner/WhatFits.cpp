// SPDX-License-Identifier: Apache-2.0
//
// Tries other settings one by one, then joined.
#include "tools/planner/WhatFits.h"

#include "ir/rota/Rota.h"
#include "ir/rota/sharding/MeshText.h"
#include "passes/differentiate/Remat.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/program/RuntimeMemory.h"
#include "tools/planner/Planner.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace rota {
namespace {

using mlir::rota::MeshAxis;
using mlir::rota::MeshSizes;

/// A request and the settings in which it differs from the user's.
struct ChangedRequest {
  PlanRequest request;
  std::vector<Setting> settings;

  CompilerOptions &compiler() { return request.compiler; }
  void set(const std::string &option, const std::string &value) {
    settings.push_back({option, value});
  }
};

/// The sizes of a checked mesh.
MeshSizes sizesOf(const CompilerOptions &compiler) {
  std::string error;
  return mlir::rota::parseMeshSizes(compiler.shard.meshText, error)
      .value_or(MeshSizes());
}

int64_t &sizeOf(MeshSizes &sizes, MeshAxis axis) {
  return sizes[static_cast<size_t>(axis)];
}

/// Whether the optimizer has ranks that hold the same parameters.
bool hasReplicas(const CompilerOptions &compiler) {
  MeshSizes sizes = sizesOf(compiler);
  return llvm::any_of(
      std::initializer_list<MeshAxis>{MeshAxis::Data, MeshAxis::Expert,
                                      MeshAxis::Context, MeshAxis::Sequence,
                                      MeshAxis::Tensor},
      [&](MeshAxis axis) { return sizeOf(sizes, axis) > 1; });
}

// Each of the changes is false where the request leaves no room for it.

bool setPolicy(ChangedRequest &changed, const std::string &policy) {
  changed.request.chooseRemat = policy == "auto";
  changed.compiler().complete.policy = policy;
  changed.compiler().setRemat(policy);
  changed.set("remat", policy);
  return true;
}

bool setSchedule(ChangedRequest &changed, const std::string &name) {
  mlir::pipe::ScheduleLayersOptions &schedule = changed.compiler().schedule;
  if (schedule.stages <= 1 || schedule.schedule == name)
    return false;
  pipe::Shape shape;
  shape.stages = int(schedule.stages);
  shape.repeats = int(std::max<int64_t>(schedule.repeats, 1));
  shape.placement = schedule.placement;
  pipe::Shape demanded = pipe::demandedShape(name, shape);
  bool hasOtherChunks = demanded.repeats != shape.repeats;
  if (hasOtherChunks && !schedule.layersPerStage.empty())
    return false;
  schedule.schedule = name;
  changed.set("schedule", name);
  if (hasOtherChunks) {
    schedule.repeats = demanded.repeats;
    changed.set("repeats", std::to_string(demanded.repeats));
  }
  if (demanded.placement != shape.placement) {
    schedule.placement = demanded.placement;
    changed.set("placement", nameOf(demanded.placement));
  }
  if (changed.request.chooseActivations)
    schedule.activations = 0;
  changed.request.chooseActivations = false;
  return true;
}

bool divideOptimizer(ChangedRequest &changed) {
  CompilerOptions &compiler = changed.compiler();
  if (compiler.shard.shardOptimizer || !hasReplicas(compiler))
    return false;
  compiler.shard.shardOptimizer = true;
  changed.set("shard-optimizer", "");
  return true;
}

/// Divides the sequences of microbatches by two, or as far as they divide.
bool shrinkMicrobatches(ChangedRequest &changed, bool asFarAsPossible) {
  CompilerOptions &compiler = changed.compiler();
  MeshSizes sizes = sizesOf(compiler);
  int64_t parts = sizeOf(sizes, MeshAxis::Data) *
                  sizeOf(sizes, MeshAxis::Fsdp) *
                  sizeOf(sizes, MeshAxis::Expert);
  int64_t &sequences = compiler.build.sequences;
  if (sequences == 0 || sequences % (2 * parts) != 0)
    return false;
  int64_t factor = asFarAsPossible ? sequences / parts : 2;
  sequences /= factor;
  compiler.schedule.microbatches *= factor;
  changed.set("microbatches", std::to_string(compiler.schedule.microbatches));
  return true;
}

bool divideLoss(ChangedRequest &changed) {
  mlir::rota::BuildOptions &build = changed.compiler().build;
  constexpr int64_t kBlocks = 8;
  if (build.sequences == 0 || build.lossBlocks >= kBlocks ||
      build.sequenceLength % kBlocks != 0)
    return false;
  build.lossBlocks = kBlocks;
  changed.set("loss-blocks", std::to_string(kBlocks));
  return true;
}

bool divideWeights(ChangedRequest &changed) {
  CompilerOptions &compiler = changed.compiler();
  MeshSizes sizes = sizesOf(compiler);
  int64_t &data = sizeOf(sizes, MeshAxis::Data);
  if (data <= 1)
    return false;
  sizeOf(sizes, MeshAxis::Fsdp) *= std::exchange(data, 1);
  compiler.shard.meshText = mlir::rota::meshText(sizes);
  changed.set("mesh", compiler.shard.meshText);
  if (compiler.complete.mode == pipe::GatherMode::Auto)
    changed.request.chooseGathers = true;
  if (compiler.shard.shardOptimizer && !hasReplicas(compiler)) {
    compiler.shard.shardOptimizer = false;
    std::erase_if(changed.settings, [](const Setting &setting) {
      return setting.option == "shard-optimizer";
    });
    changed.settings.push_back({"shard-optimizer", "", /*isDropped=*/true});
  }
  return true;
}

using Change = std::function<bool(ChangedRequest &)>;

class AlternativeSearch {
public:
  explicit AlternativeSearch(const PlanRequest &request) : request(request) {}

  std::vector<Alternative> run() {
    const std::vector<Change> changes = {
        [](ChangedRequest &c) { return setSchedule(c, "1f1b"); },
        [](ChangedRequest &c) { return setSchedule(c, "circular"); },
        divideOptimizer,
        [](ChangedRequest &c) { return shrinkMicrobatches(c, false); },
        divideLoss,
        divideWeights};
    if (!request.chooseRemat)
      tryPolicies();
    for (const Change &change : changes)
      tryChanges({change});
    if (hasFit())
      return std::move(tried);
    Change full = [](ChangedRequest &c) { return setPolicy(c, "full"); };
    Change smallest = [](ChangedRequest &c) {
      return shrinkMicrobatches(c, true);
    };
    for (const Change &change : changes)
      tryChanges({change, full});
    tryChanges({smallest});
    tryChanges({smallest, divideLoss});
    if (!hasFit())
      tryChanges({divideOptimizer, smallest, divideLoss, full});
    if (!hasFit())
      tryChanges({divideWeights, divideOptimizer, smallest, divideLoss, full});
    return std::move(tried);
  }

private:
  /// Tries all policies with a name but the request's, and their mixture.
  void tryPolicies() {
    for (llvm::StringRef name : mlir::rota::policyNames())
      if (name != request.compiler.differentiate.remat)
        tryChanges(
            {[&](ChangedRequest &c) { return setPolicy(c, name.str()); }});
    tryChanges({[](ChangedRequest &c) { return setPolicy(c, "auto"); }});
  }

  /// Plans the request with those of the changes that it has room for.
  void tryChanges(const std::vector<Change> &changes) {
    ChangedRequest changed{request, {}};
    for (const Change &change : changes)
      change(changed);
    if (changed.settings.empty())
      return;
    PlanChoices choices;
    std::string error;
    if (!chooseOpen(changed.request, choices, error))
      return;
    PolicyPlan plan;
    if (choices.remat)
      plan = std::move(choices.remat->plan);
    else
      planPolicy(changed.request, plan);
    if (!plan.error.empty())
      return;
    Alternative found{changed.settings, 0, plan.hostBytes, plan.time.seconds(),
                      plan.operations};
    for (const StageNeed &need : plan.stages)
      found.bytes = std::max(found.bytes, need.bytes);
    tried.push_back(std::move(found));
  }

  bool hasFit() const {
    return llvm::any_of(tried, [&](const Alternative &one) {
      return one.bytes <= request.compiler.memory;
    });
  }

  const PlanRequest &request;
  std::vector<Alternative> tried;
};

bool isPolicy(const Alternative &one) {
  return one.settings.size() == 1 && one.settings.front().option == "remat";
}

bool isNoWorse(const Alternative &a, const Alternative &b) {
  return a.seconds <= b.seconds && a.bytes <= b.bytes &&
         a.hostBytes <= b.hostBytes;
}

/// The alternatives that fit, the shortest step first.
std::vector<Alternative> fittingOf(std::vector<Alternative> all,
                                   int64_t memory) {
  std::erase_if(all, [&](const auto &one) { return one.bytes > memory; });
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return std::tie(a.seconds, a.bytes, a.hostBytes) <
           std::tie(b.seconds, b.bytes, b.hostBytes);
  });
  std::vector<Alternative> fitting;
  for (Alternative &one : all)
    if (!isPolicy(one) || llvm::none_of(fitting, [&](const Alternative &other) {
          return isPolicy(other) && isNoWorse(other, one);
        }))
      fitting.push_back(std::move(one));
  return fitting;
}

/// Plans the request as it is: with `full` where its policy is open, without a
/// bound where that is to be found.
bool planAsked(PlanRequest request, WhatFits &result, std::string &error) {
  if (request.chooseRemat)
    request.compiler.setRemat("full");
  request.chooseRemat = request.chooseActivations = false;
  PlanChoices choices;
  if (!chooseOpen(request, choices, error))
    return false;
  std::optional<Plan> plan = estimatePlan(request.compiler, error);
  if (!plan)
    return false;
  for (size_t stage = 0; stage < plan->program.stages.size(); ++stage)
    if (int64_t bytes = deviceBytes(plan->program, stage);
        bytes > result.asked.bytes) {
      result.asked.bytes = bytes;
      result.stage = stage;
    }
  result.uses = namedUses(*plan, result.stage);
  result.plan = *plan;
  PolicyPlan row;
  readPlan(request, *plan, row);
  result.asked.seconds = row.time.seconds();
  result.asked.operations = row.operations;
  result.asked.hostBytes = row.hostBytes;
  return true;
}

} // namespace

std::optional<WhatFits> whatFits(const PlanRequest &request,
                                 std::string &error) {
  WhatFits result;
  if (!planAsked(request, result, error) ||
      result.asked.bytes <= request.compiler.memory)
    return std::nullopt;
  std::vector<Alternative> tried = AlternativeSearch(request).run();
  result.fitting = fittingOf(tried, request.compiler.memory);
  if (result.fitting.empty() && !tried.empty())
    result.nearest = *llvm::min_element(
        tried, [](const auto &a, const auto &b) { return a.bytes < b.bytes; });
  return result;
}

} // namespace rota
