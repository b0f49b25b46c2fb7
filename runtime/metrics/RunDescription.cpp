// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/RunDescription.h"
#include "runtime/metrics/StepNumbers.h"
#include "runtime/program/JsonText.h"
#include "runtime/program/MeshText.h"
#include "runtime/text/Text.h"
#include "runtime/trace/PlannedTimes.h"

#include <ctime>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {

std::string ranksText(const Program &program) {
  std::string text = counted(rankCount(program), "rank"),
              mesh = meshText(program.mesh);
  bool isPlain = mesh.starts_with("stage=") && mesh.find(',') == mesh.npos;
  return isPlain ? text : text + " (" + mesh + ")";
}

ordered_json meshJson(const Program &program) {
  ordered_json mesh = ordered_json::object();
  for (const MeshAxis &axis : program.mesh)
    mesh[axis.name] = axis.size;
  return mesh;
}

static ordered_json optionsJson(const std::vector<Option> &options) {
  ordered_json values = ordered_json::object();
  for (const Option &option : options)
    if (option.commands & unsigned(Command::Train))
      values[option.name] = valueTexts(option);
  return values;
}

ordered_json usesJson(const Stage &stage) {
  ordered_json uses = ordered_json::object();
  for (const std::vector<Region> *regions :
       {&stage.regions, &stage.hostRegions})
    for (const Region &region : *regions)
      uses[region.use] = region.bytes;
  return uses;
}

static ordered_json plannedJson(const Stage &stage, const Clock &clock,
                                size_t number) {
  ordered_json rows = ordered_json::array();
  for (size_t a = 0; a < stage.actions.size(); ++a) {
    const ActionTemplate &actionTemplate =
        stage.templateOf(static_cast<int>(a));
    rows.push_back({toString(Action{actionTemplate.chunk, actionTemplate.kind,
                                    stage.actions[a].microbatch}),
                    toString(actionTemplate.kind), clock.begin[number][a],
                    clock.end[number][a]});
  }
  return rows;
}

static ordered_json transfersJson(const Stage &stage, const Clock &clock,
                                  size_t number) {
  struct Sum {
    int64_t count = 0;
    double seconds = 0.0;
  };
  std::array<Sum, kActionKindCount> sums;
  for (size_t a = 0; a < stage.actions.size(); ++a)
    if (ActionKind kind = stage.kindOf(static_cast<int>(a));
        isAsynchronous(kind)) {
      Sum &sum = sums[static_cast<size_t>(kind)];
      ++sum.count;
      sum.seconds += clock.end[number][a] - clock.begin[number][a];
    }
  ordered_json kinds = ordered_json::object();
  for (size_t k = 0; k < sums.size(); ++k)
    if (sums[k].count > 0)
      kinds[toString(ActionKind(k))] = {{"count", sums[k].count},
                                        {"seconds", sums[k].seconds},
                                        {"exposed", clock.exposed[number][k]}};
  return kinds;
}

static ordered_json stagesJson(const Program &program,
                               const std::optional<Clock> &clock) {
  int64_t actions = 0;
  for (const Stage &stage : program.stages)
    actions += static_cast<int64_t>(stage.actions.size());
  ordered_json rows = ordered_json::array();
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage &stage = program.stages[s];
    ordered_json row = {{"bytes", stage.arenaBytes},
                        {"host_bytes", stage.hostBytes},
                        {"uses", usesJson(stage)}};
    if (clock)
      row["transfers"] = transfersJson(stage, *clock, s);
    if (clock && actions <= kMostPlannedActions)
      row["planned"] = plannedJson(stage, *clock, s);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string describeRun(const Program &program, const RunFacts &facts) {
  std::optional<Clock> clock = plannedTimes(program);
  ordered_json run = {{"started", std::time(nullptr)},
                      {"model", program.model},
                      {"schedule", program.schedule},
                      {"parameters", program.parameterCount},
                      {"device", facts.device},
                      {"data", facts.data},
                      {"ranks", rankCount(program)},
                      {"mesh", meshJson(program)},
                      {"microbatches", program.microbatches},
                      {"tokens_per_step", facts.tokensPerStep},
                      {"flops_per_token", program.flopsPerToken},
                      {"peak_flops", nullptr},
                      {keyOf(StepNumber::BubblePlanned), facts.plannedBubble},
                      {"planned_seconds", nullptr},
                      {"options", optionsJson(facts.options)},
                      {"stages", stagesJson(program, clock)},
                      {"timeline", program.timeline},
                      {"plan", program.plan}};
  if (facts.peakFlops)
    run["peak_flops"] = *facts.peakFlops;
  if (clock && facts.hasStepBarrier)
    run["planned_seconds"] = clock->makespan;
  else if (std::optional<double> step = plannedSteadySeconds(program))
    run["planned_seconds"] = *step;
  return jsonText(run, 1) + "\n";
}

} // namespace rota
